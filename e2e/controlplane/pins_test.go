package controlplane

import (
	"strings"
	"testing"
)

func TestVersionsComeFromRequireLinesOnly(t *testing.T) {
	const goMod = `module example.com/x

require (
	github.com/cert-manager/cert-manager v1.2.3
	github.com/k8snetworkplumbingwg/network-attachment-definition-client v1.7.7 // indirect
	go.etcd.io/etcd/server/v3 v3.7.3
	k8s.io/kubernetes v1.37.2
	sigs.k8s.io/kwok v0.8.0 // indirect
)

replace k8s.io/kubernetes => k8s.io/kubernetes v9.9.9
`
	got, err := versionsIn(goMod)
	if err != nil {
		t.Fatal(err)
	}
	want := Versions{
		Kubernetes: "v1.37.2", Etcd: "v3.7.3", Kwok: "v0.8.0",
		CertManager: "v1.2.3", NetworkAttachmentDefinition: "v1.7.7",
	}
	if got != want {
		t.Errorf("versions are %+v, want %+v", got, want)
	}
}

func TestMissingVersionIsNamed(t *testing.T) {
	_, err := versionsIn("module example.com/x\n")
	if err == nil || !strings.Contains(err.Error(), "requires no version of") {
		t.Errorf("error is %v, want one that names a module", err)
	}
}

func TestEveryStagingModuleIsReplacedByItsRelease(t *testing.T) {
	versions, err := PinnedVersions()
	if err != nil {
		t.Fatal(err)
	}
	content, err := moduleFiles.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	want := StagingVersion(versions.Kubernetes)
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) == 4 && fields[1] == "=>" && strings.HasPrefix(fields[0], "k8s.io/") && fields[3] != want {
			t.Errorf("%s is replaced by %s, want %s", fields[0], fields[3], want)
		}
	}
}

func TestEnvironmentChoosesKubernetes(t *testing.T) {
	pinned, err := PinnedVersions()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ asked, want string }{
		{"", pinned.Kubernetes},
		{"v1.31.1", "v1.31.1"},
		{"1.31.1", ""},
		{"v1.31", ""},
		{"v1.31.x", ""},
		{"v1.32.0-rc.1", ""},
		{"v2.0.0", ""},
	} {
		t.Run(test.asked, func(t *testing.T) {
			t.Setenv(KubernetesVariable, test.asked)
			got, err := WantedVersions()
			if (err != nil) != (test.want == "") {
				t.Fatalf("error is %v, want Kubernetes %q", err, test.want)
			}
			if got.Kubernetes != test.want {
				t.Errorf("Kubernetes is %q, want %q", got.Kubernetes, test.want)
			}
			if got.Kubernetes = pinned.Kubernetes; err == nil && got != pinned {
				t.Errorf("other versions are %+v, want %+v", got, pinned)
			}
		})
	}
}

func TestFingerprintIsStable(t *testing.T) {
	first, err := Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	second, err := Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	if first != second || len(first) != 8 {
		t.Errorf("fingerprints are %q and %q, want the same eight characters", first, second)
	}
}
