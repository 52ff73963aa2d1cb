package wire

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
)

func TestMain(m *testing.M) { fixedruns.Main(m, 500, 30) }

// fragment is data with its record mark.
func fragment(data []byte, last bool) []byte {
	mark := uint32(len(data))
	if last {
		mark |= lastFragment
	}
	return append(word(nil, mark), data...)
}

func TestRecordIsTheSameHoweverItIsFragmented(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 1, 20).Draw(t, "fragments")
		var stream, want []byte
		for i, part := range parts {
			stream = append(stream, fragment(part, i == len(parts)-1)...)
			want = append(want, part...)
		}
		next := fragment([]byte("next"), true)
		var reader io.Reader = bytes.NewReader(append(bytes.Clone(stream), next...))
		if rapid.Bool().Draw(t, "byte by byte") {
			reader = iotest.OneByteReader(reader)
		}
		got, err := ReadRecord(reader)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %x, %v, want %x", got, err, want)
		}
		if got, err = ReadRecord(reader); err != nil || string(got) != "next" {
			t.Fatalf("the next record is %q, %v", got, err)
		}
		cut := rapid.IntRange(0, len(stream)-1).Draw(t, "cut")
		_, err = ReadRecord(bytes.NewReader(stream[:cut]))
		if want := io.ErrUnexpectedEOF; cut == 0 && !errors.Is(err, io.EOF) || cut > 0 && !errors.Is(err, want) {
			t.Fatalf("cut at %d of %d: %v", cut, len(stream), err)
		}
	})
}

func TestOversizedRecordsAreRefusedBeforeTheyAreRead(t *testing.T) {
	full := slices.Clip(fragment(make([]byte, MaxRecord), false))
	for name, c := range map[string]struct {
		stream []byte
		bad    bool
	}{
		"largest":              {fragment(make([]byte, MaxRecord), true), false},
		"one byte more":        {word(nil, lastFragment|MaxRecord+1), true},
		"2 GiB":                {word(nil, 0xffffffff), true},
		"one byte more in two": {append(full, word(nil, lastFragment|1)...), true},
		"full, then an empty":  {append(full, fragment(nil, true)...), false},
		"answer of HTTP":       {[]byte("HTTP/1.1 400 Bad Request\r\n"), true},
		"empty fragments":      {make([]byte, 4*(maxFragments+1)), true},
	} {
		if _, err := ReadRecord(bytes.NewReader(c.stream)); IsBadRecord(err) != c.bad || !c.bad && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// largestRead is a connection that stays silent after a mark.
type largestRead struct {
	mark io.Reader
	size int
}

func (l *largestRead) Read(b []byte) (int, error) {
	l.size = max(l.size, len(b))
	if n, err := l.mark.Read(b); err == nil {
		return n, nil
	}
	return 0, io.ErrNoProgress
}

func TestAnAnnouncedLengthIsNotAllocated(t *testing.T) {
	reader := &largestRead{mark: bytes.NewReader(word(nil, lastFragment|MaxRecord))}
	if _, err := ReadRecord(reader); !errors.Is(err, io.ErrNoProgress) {
		t.Fatal(err)
	}
	if reader.size < 5 || reader.size > 1024 {
		t.Errorf("read into %d bytes before any arrived", reader.size)
	}
}
