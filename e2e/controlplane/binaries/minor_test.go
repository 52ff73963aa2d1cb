package binaries

import "testing"

func TestMinorVersionIsReadFromOutput(t *testing.T) {
	for text, want := range map[string]Minor{
		"Kubernetes v1.36.3":                                 {1, 36},
		"etcd Version: 3.6.8\nGit SHA: Not provided":         {3, 6},
		"kwok version v0.8.0 (go1.26.8, linux)":              {0, 8},
		"Client Version: v1.36.0\nKustomize Version: v5.8.1": {1, 36},
		"Kubernetes v1.36.1+k3s1":                            {1, 36},
	} {
		got, err := minorOf(text)
		if err != nil || got != want {
			t.Errorf("%q is read as %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestInvalidReleaseIsRefused(t *testing.T) {
	for _, text := range []string{
		"Client Version: v1.36.4-dispatcher\nKustomize Version: v5.8.1",
		"Kubernetes v1.36.0-rc.1",
		"Kubernetes v0.0.0-master+$Format:%H$",
		"command not found",
		"",
	} {
		if got, err := minorOf(text); err == nil {
			t.Errorf("%q is read as %v, want an error", text, got)
		}
	}
}
