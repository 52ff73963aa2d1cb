package cephclients

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cephclients/cephcli"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

const (
	rbd    = "rook-ceph.rbd.csi.ceph.com"
	cephfs = "rook-ceph.cephfs.csi.ceph.com"
)

func volume(name, driver string, mode corev1.PersistentVolumeAccessMode, attributes map[string]string) *corev1.PersistentVolume {
	pv := objects.Volume(name, driver, "handle-"+name, name, objects.InCluster("rook-ceph"))
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{mode}
	maps.Copy(pv.Spec.CSI.VolumeAttributes, attributes)
	return pv
}

func image(name string, mode corev1.PersistentVolumeAccessMode, more ...string) *corev1.PersistentVolume {
	attributes := map[string]string{"pool": "pool", "imageName": "i-" + name}
	for i := 0; i < len(more); i += 2 {
		attributes[more[i]] = more[i+1]
	}
	return volume(name, rbd, mode, attributes)
}

func held(names ...string) []v1alpha1.HeldVolume {
	var volumes []v1alpha1.HeldVolume
	for _, name := range names {
		volumes = append(volumes, v1alpha1.HeldVolume{PersistentVolume: name})
	}
	return volumes
}

// asker asks a server that knows addresses by image or path, and of everything else that it failed.
func asker(t *testing.T, asked *cephcli.Request, known map[string][]string, objects ...client.Object) Reporter {
	t.Helper()
	scheme, err := reads.NewScheme()
	must.Do(t, err)
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	held, err := fencingreads.ListedHoldings(t.Context(), live, profiles.RookCeph().Serves)
	must.Do(t, err)
	return Reporter{
		ClusterID: "rook-ceph", Live: live, Held: held,
		Ask: func(_ context.Context, request cephcli.Request) (cephcli.Answer, error) {
			if *asked = request; known == nil {
				return cephcli.Answer{}, errors.New("unreachable")
			}
			answer := cephcli.Answer{Clients: map[string]cephcli.Found{}, Servers: cephcli.Found{Addresses: addrs("192.168.9.1", "192.168.1.1"), Problem: "no manager answered"}}
			for name, v := range request {
				if texts, ok := known[v.Image+v.Path]; ok {
					answer.Clients[name] = cephcli.Found{Addresses: addrs(texts...)}
				} else {
					answer.Clients[name] = cephcli.Found{Problem: "no answer"}
				}
			}
			return answer, nil
		},
	}
}

func addrs(texts ...string) []netip.Addr {
	var all []netip.Addr
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

// facts of node-1, which holds volumes by its record and by what is seen of it.
func facts(recorded, seen []v1alpha1.HeldVolume) fence.Facts {
	return fence.Facts{
		Record: "node-1", Node: fence.Node{Name: "node-1", Addresses: addrs("192.168.1.1")}, Now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
		Spec: v1alpha1.NodeFenceSpec{Volumes: recorded}, Holding: seen,
	}
}

func TestReportCoversVolumesThatMentionTheNode(t *testing.T) {
	var asked cephcli.Request
	const rwo, rwx, rox = corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadOnlyMany
	a := asker(t, &asked, map[string][]string{"i-mine": {"192.168.1.1"}, "i-recorded": {"192.168.1.1", "192.168.1.9"}, "i-shared": {"192.168.1.2"}, "i-free": nil, "handle-static": {"192.168.1.1"}, "/volumes/v": {"192.168.1.1"}, "/root": {}},
		image("mine", rwo), objects.Attachment("mine", "node-1", rbd), image("recorded", rwo), image("free", rwo),
		image("both", rwo), objects.Attachment("both", "node-1", rbd), objects.Attachment("both", "node-2", rbd),
		image("theirs", rwo), &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: "node-3"}, Spec: v1alpha1.NodeFenceSpec{Volumes: held("theirs")}},
		&v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Spec: v1alpha1.NodeFenceSpec{Volumes: held("recorded", "theirs")}},
		image("namesake", rwo), &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: "node-1-2"}, Spec: v1alpha1.NodeFenceSpec{NodeName: "node-1", Volumes: held("namesake")}},
		image("shared", rwx), objects.Attachment("shared", "node-2", rbd), image("read", rox), image("silent", rwo),
		image("static", rwo, "staticVolume", "true", "imageName", "other"), image("odd", rwo, "imageName", "--all"), image("external", rwo, "clusterID", "external"),
		volume("dir", cephfs, rwo, map[string]string{"fsName": "fs", "subvolumePath": "/volumes/v"}),
		volume("root", cephfs, rwo, map[string]string{"fsName": "fs", "subvolumePath": "/x", "rootPath": "/root", "staticVolume": "true"}),
	)
	report, err := a.Report(t.Context(), facts(held("recorded", "theirs", "namesake", "mine", "gone", "external"), held("mine", "both", "shared", "read", "free", "silent", "static", "odd", "dir", "root")))
	var got []string
	for _, c := range report.Clients {
		got = append(got, fmt.Sprint(c.Volume.PersistentVolume, c.Addresses))
		must.Check(t, c.Volume.Shared == (c.Volume.PersistentVolume == "shared") && c.Volume.ClusterID == "rook-ceph", "%+v", c.Volume)
	}
	if want := []string{"dir[192.168.1.1]", "free[]", "mine[192.168.1.1]", "recorded[192.168.1.1 192.168.1.9]", "root[]", "shared[192.168.1.2]", "static[192.168.1.1]"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, text := range []string{"silent", "odd", `external is of Ceph cluster "external"`, "Ceph's servers"} {
		must.Check(t, err != nil && strings.Contains(err.Error(), text), "the error lacks %q: %v", text, err)
	}
	must.Equal(t, len(asked), 8, "asked about %v", asked)
	// A server at an address of the node itself is lost with it.
	must.Check(t, len(report.Servers) == 1 && fmt.Sprint(report.Servers[0].Addresses) == "[192.168.9.1]", "servers %v", report.Servers)
}

func TestUnreachableServerReportsNothing(t *testing.T) {
	var asked cephcli.Request
	a := asker(t, &asked, nil, image("mine", corev1.ReadWriteOnce))
	report, err := a.Report(t.Context(), facts(nil, held("mine")))
	must.Check(t, err != nil && len(report.Clients) == 0 && len(asked) == 1, "%v, %v, asked about %v", report, err, asked)
}

func TestEachDriverHasHalfOfTheRequest(t *testing.T) {
	var asked cephcli.Request
	var objects []client.Object
	var names []string
	for i := range cephcli.MaxVolumes {
		name := fmt.Sprintf("a%02d", i)
		objects, names = append(objects, image(name, corev1.ReadWriteOnce)), append(names, name)
	}
	objects = append(objects, volume("z", cephfs, corev1.ReadWriteOnce, map[string]string{"fsName": "fs", "subvolumePath": "/v"}))
	a := asker(t, &asked, map[string][]string{}, objects...)
	if _, err := a.Report(t.Context(), facts(held(append(names, "z")...), nil)); err == nil || len(asked) != cephcli.MaxVolumes/2+1 || asked["z"].Path != "/v" || asked.Validate() != nil {
		t.Errorf("asked about %v", asked)
	}
}
