package watchers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// MaxOutput is the most that is read of one answer. A client of a CephFS is
// about 1.5 KB, so this is for some ten thousand at three MDSs.
const MaxOutput = 64 << 20

// maxValues is how many JSON values one output may have: one for each MDS.
const maxValues = 1024

// value is one JSON value of an output, and the MDS named before it.
type value struct {
	mds  string
	json json.RawMessage
}

var (
	mdsPrefix = regexp.MustCompile(`^mds\.([A-Za-z0-9][A-Za-z0-9._-]{0,252}):[ \t]*`)

	// What librados and the ceph tool write to stderr, for callers that have only
	// both streams in one: lines of a log, errors of one of many targets.
	noise = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S* |Error E[A-Z0-9]+: ?|listed \d+ entries$)`)

	errNoAnswer = errors.New("there is no answer")
)

// split cuts an output into its JSON values. Lines between them that are known
// noise are left out, any other text is an error.
func split(output []byte) ([]value, error) {
	if len(output) > MaxOutput {
		return nil, fmt.Errorf("the answer has %d bytes, more than %d", len(output), MaxOutput)
	}
	var values []value
	mds := ""
	for rest := bytes.TrimSpace(output); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		if rest[0] == '[' || rest[0] == '{' {
			if len(values) == maxValues {
				return nil, fmt.Errorf("the answer has more than %d parts", maxValues)
			}
			found, length, err := firstJSON(rest)
			if err != nil {
				return nil, err
			}
			values = append(values, value{mds: mds, json: found})
			mds, rest = "", rest[length:]
			continue
		}
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		if match := mdsPrefix.FindSubmatch(line); match != nil {
			mds, rest = string(match[1]), rest[len(match[0]):]
			if len(match[0]) == len(line) {
				mds = "" // it was named, and said nothing: it is not among those who answered
			}
			continue
		}
		if !noise.Match(bytes.TrimRight(line, "\r")) {
			return nil, fmt.Errorf("the answer is not what Ceph writes: %s", quoted(line))
		}
		mds, rest = "", after
	}
	if len(values) == 0 {
		return nil, errNoAnswer
	}
	return values, nil
}

func firstJSON(text []byte) (json.RawMessage, int, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	var found json.RawMessage
	switch err := decoder.Decode(&found); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, 0, errors.New("the answer is cut off")
	case err != nil:
		return nil, 0, fmt.Errorf("the answer is not JSON: %w", err)
	}
	return found, int(decoder.InputOffset()), nil
}

// one is the only value of an output that has no MDS before it.
func one(output []byte) (json.RawMessage, error) {
	values, err := split(output)
	if err != nil {
		return nil, err
	}
	if len(values) != 1 || values[0].mds != "" {
		return nil, fmt.Errorf("the answer has %d parts, or is an MDS's", len(values))
	}
	return values[0].json, nil
}

func quoted(line []byte) string {
	const most = 120
	if len(line) > most {
		return fmt.Sprintf("%q…", line[:most])
	}
	return fmt.Sprintf("%q", line)
}
