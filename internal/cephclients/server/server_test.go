package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fairlead-io/fairlead/internal/cephclients/cephcli"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// scripted answers commands by their words; all others fail.
type scripted struct {
	answers map[string]string
	lock    sync.Mutex
	asked   []string
}

func (s *scripted) run(_ context.Context, program string, args ...string) ([]byte, error) {
	command := strings.Join(append([]string{program}, args...), " ")
	s.lock.Lock()
	defer s.lock.Unlock()
	s.asked = append(s.asked, command)
	if answer, ok := s.answers[command]; ok {
		return []byte(answer), nil
	}
	return nil, errors.New("no answer")
}

const (
	status   = "rbd status --format=json --pool=p --image="
	mdsStat  = "ceph mds stat --format=json"
	metadata = "ceph mgr metadata --format=json"
	twoRanks = `{"fsmap":{"filesystems":[{"mdsmap":{"fs_name":"fs","in":[0,1],"info":{` +
		`"gid_1":{"state":"up:active","addr":"192.168.9.1:6800/1"},"gid_2":{"state":"up:active","addr":"192.168.9.2:6800/1"}}}}],` +
		`"standbys":[{"state":"up:standby","addr":"192.168.9.3:6800/1"}]}}`
)

func sessions(inst, root string) string {
	return `[{"inst":"` + inst + `","client_metadata":{"root":"` + root + `"}}]`
}

func post(run Run, body string) (int, cephcli.Answer, string) {
	response := httptest.NewRecorder()
	Handler(run).ServeHTTP(response, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
	var answer cephcli.Answer
	_ = json.Unmarshal(response.Body.Bytes(), &answer)
	return response.Code, answer, response.Body.String()
}

func TestClientsOfImagesAndDirectories(t *testing.T) {
	s := &scripted{answers: map[string]string{
		metadata: `[{"addrs":"192.168.9.4:0/1"}]`, mdsStat: twoRanks,
		status + "a": `{"watchers":[{"address":"192.168.1.1:0/1"}]}`, status + "free": `{"watchers":[]}`,
		"ceph tell mds.fs:0 client ls --format=json": sessions("client.7 192.168.1.1:0/7", "/v"),
		"ceph tell mds.fs:1 client ls --format=json": sessions("client.8 192.168.1.2:0/8", "/v"),
	}}
	code, answer, body := post(s.run, `{"a":{"pool":"p","image":"a"},"free":{"pool":"p","image":"free"},"lost":{"pool":"p","image":"lost"},`+
		`"v":{"fileSystem":"fs","path":"/v/"},"w":{"fileSystem":"fs","path":"/w"},"x":{"fileSystem":"none","path":"/v"}}`)
	if code != http.StatusOK {
		t.Fatal(code, body)
	}
	var got []string
	for name, f := range answer.Clients {
		got = append(got, fmt.Sprintf("%s%v%t", name, f.Addresses, f.Problem != ""))
	}
	slices.Sort(got)
	want := []string{"a[192.168.1.1]false", "free[]false", "lost[]true", "v[192.168.1.1 192.168.1.2]false", "w[]false", "x[]true"}
	must.Equal(t, got, want)
	must.Equal(t, fmt.Sprint(answer.Servers), "{[192.168.9.1 192.168.9.2 192.168.9.3 192.168.9.4] }", "servers %v", answer.Servers)
	must.Equal(t, len(s.asked), 7, "a file system is asked more than once: %q", s.asked)
}

// A rank that does not answer may have clients that no answer names.
func TestOneSilentRankHidesItsFileSystem(t *testing.T) {
	s := &scripted{answers: map[string]string{mdsStat: twoRanks, "ceph tell mds.fs:0 client ls --format=json": sessions("client.7 192.168.1.1:0/7", "/v")}}
	_, answer, _ := post(s.run, `{"v":{"fileSystem":"fs","path":"/v"}}`)
	must.Check(t, answer.Clients["v"].Problem != "" && len(answer.Clients["v"].Addresses) <= 0, "got %+v", answer.Clients)
	must.Check(t, len(answer.Servers.Addresses) == 3 && answer.Servers.Problem != "", "the managers did not answer: %+v", answer.Servers)
}

func TestMalformedRequestsAreRefused(t *testing.T) {
	for _, body := range []string{
		"", "x", "[]", `{"a":{"pool":"-p","image":"i"}}`, `{"a":{"pool":"p","image":"i","command":"rm"}}`, `{"a":{"fileSystem":"*","path":"/"}}`,
		`{"a":{"pool":"p","image":"` + strings.Repeat("i", maxRequest) + `"}}`, strings.Repeat(" ", maxRequest) + "{}",
	} {
		s := &scripted{}
		if code, _, _ := post(s.run, body); code != http.StatusBadRequest || len(s.asked) > 0 {
			t.Errorf("%.60q: %d, ran %q", body, code, s.asked)
		}
	}
}

func TestCommandsOfAllRequestsShareTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, release := make(chan bool, 100), make(chan struct{})
		run := func(context.Context, string, ...string) ([]byte, error) {
			running <- true
			<-release
			return []byte("{}"), nil
		}
		handler := Handler(run)
		for range 2 {
			go handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"a":{"pool":"p","image":"a"},"b":{"pool":"p","image":"b"},"c":{"pool":"p","image":"c"}}`)))
		}
		synctest.Wait()
		must.Equal(t, len(running), commandsAtOnce, "commands run at once")
		close(release)
	})
}
