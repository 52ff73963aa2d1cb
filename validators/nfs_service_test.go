package validators

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
)

func nfsService(change func(*NFSService)) NFSService {
	var s NFSService
	s.Metadata.Namespace, s.Metadata.Name = "storage", "files"
	s.Spec.Backends = []v1alpha1.NFSBackend{{Address: "10.0.0.1"}, {Address: "10.0.0.2"}}
	change(&s)
	return s
}

func same(*NFSService) {}

func TestAllProblemsOfAnNFSServiceAreReported(t *testing.T) {
	s := nfsService(func(s *NFSService) {
		s.Spec.Backends[0].Address, s.Spec.Shares, s.Spec.Versions = "nfs.example.com", []string{"exports"}, []int32{2}
		s.Status.Slots = make([]v1alpha1.NFSSlotStatus, 8) // made up: it must not count
		s.Spec.Slots = ptr.To[int32](4)
	})
	v := ValidateNFSService(s, nil, false)
	text := v.Problems.ToAggregate().Error()
	for _, want := range []string{"spec.backends[0].address: Invalid value: ", "not an IP address", "spec.shares[0]", `write "/exports"`, "spec.versions[0]"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if len(v.Problems) != 3 || v.Reason != ReasonInvalidNFSService {
		t.Errorf("got %d problems, %s: %s", len(v.Problems), v.Reason, text)
	}
}

func TestUpdatesOfNFSServices(t *testing.T) {
	old := nfsService(func(s *NFSService) {
		s.Spec.Exposure = "PerNodeStable"
		s.Status.Slots = make([]v1alpha1.NFSSlotStatus, 8)
	})
	for name, test := range map[string]struct {
		change  func(*NFSService)
		mounted bool
		field   string
	}{
		"nothing": {same, true, ""},
		"a backend more": {func(s *NFSService) {
			s.Spec.Backends = append(s.Spec.Backends, v1alpha1.NFSBackend{Address: "10.0.0.3"})
		}, true, ""},
		"exposure":              {func(s *NFSService) { s.Spec.Exposure = "PerNode" }, false, "spec.exposure"},
		"slots lowered":         {func(s *NFSService) { s.Spec.Slots = ptr.To[int32](7) }, false, "spec.slots"},
		"slots raised":          {func(s *NFSService) { s.Spec.Slots = ptr.To[int32](9) }, true, ""},
		"port while mounted":    {func(s *NFSService) { s.Spec.Port = 2050 }, true, "spec.port"},
		"port, mounted nowhere": {func(s *NFSService) { s.Spec.Port = 2050 }, false, ""},
	} {
		updated := nfsService(test.change)
		v := ValidateNFSService(updated, &old, test.mounted)
		var fields []string
		for _, p := range v.Problems {
			fields = append(fields, p.Field)
		}
		if got := strings.Join(fields, ","); got != test.field {
			t.Errorf("%s: got %q, %v", name, got, v.Problems)
		}
		if changes := updated.ChangesPort(old); changes != strings.HasPrefix(name, "port") {
			t.Errorf("%s: changes the port: %v", name, changes)
		}
	}
}

func TestDrainOfMountedBackendWarns(t *testing.T) {
	perNode := func(s *NFSService) { s.Spec.Exposure = "PerNode" }
	old := nfsService(func(s *NFSService) {
		perNode(s)
		s.Status.Backends = []v1alpha1.NFSBackendStatus{{Address: "10.0.0.1:2049", Source: "static", Nodes: 3}}
	})
	drained := nfsService(func(s *NFSService) { perNode(s); s.Spec.Backends[0].Drain = true })
	if v := ValidateNFSService(drained, &old, true); len(v.Problems) > 0 || len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0], "mounted by 3 nodes") {
		t.Errorf("got %+v", v)
	}
}

func TestDeletionOfMountedServiceNamesNodes(t *testing.T) {
	var use NFSServiceUse
	for i := range 7 {
		use.Mounts = append(use.Mounts, NFSMount{Node: fmt.Sprintf("node-%d", i/2), PersistentVolume: fmt.Sprintf("pv-%d", i)})
	}
	v := ValidateNFSServiceDeletion(nfsService(same), use)
	if len(v.Problems) != 1 || v.Reason != ReasonNFSServiceInUse {
		t.Fatalf("got %+v", v)
	}
	for _, want := range []string{"storage/files are attached to 4 nodes", "node-0 (pv-0), node-0 (pv-1)", "and 2 more", "Delete the pods", "fairlead nfs storage/files"} {
		if !strings.Contains(v.Problems[0].Detail, want) {
			t.Errorf("no %q in %s", want, v.Problems[0].Detail)
		}
	}
	v = ValidateNFSServiceDeletion(nfsService(same), NFSServiceUse{Volumes: []string{"pv-a"}})
	if len(v.Problems) > 0 || len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0], "storage/files still has 1 PersistentVolume: pv-a.") {
		t.Errorf("got %+v", v)
	}
	if v = ValidateNFSServiceDeletion(nfsService(same), NFSServiceUse{}); len(v.Problems)+len(v.Warnings) > 0 {
		t.Errorf("got %+v", v)
	}
}

func nfsVolume(attributes map[string]string, mountOptions ...string) volume.View {
	var v volume.View
	v.Spec.MountOptions, v.Spec.CSI = mountOptions, volume.CSI{Driver: volume.GKEDriver, VolumeAttributes: attributes}
	return v
}

func TestNFSVolumes(t *testing.T) {
	service := &v1alpha1.NFSService{Spec: v1alpha1.NFSServiceSpec{Backends: []v1alpha1.NFSBackend{{Address: "10.0.0.1"}}, Shares: []string{"/a"}}}
	perNode := service.DeepCopy()
	perNode.Spec.Exposure = "PerNode"
	key := types.NamespacedName{Namespace: "storage", Name: "files"}
	block := nfsVolume(map[string]string{"share": "/a"})
	block.Spec.VolumeMode = "Block"
	for name, test := range map[string]struct {
		volume  volume.View
		service *v1alpha1.NFSService
		// fields with problems, and words of the warnings.
		fields, warned string
	}{
		"well formed":            {nfsVolume(map[string]string{"share": "/a/b", "subdir": "${pvc.metadata.name}"}, "vers=3,read_ahead_kb=15360"), service, "", ""},
		"several problems":       {nfsVolume(map[string]string{"share": "a", "mountPermissions": "9"}, "nconnect=99"), service, "spec.csi.volumeAttributes[share] spec.csi.volumeAttributes[mountPermissions] spec.mountOptions[0]", ""},
		"an unknown option":      {nfsVolume(map[string]string{"share": "/a"}, "nconect=4"), service, "spec.mountOptions", ""},
		"an unknown one allowed": {nfsVolume(map[string]string{"share": "/a"}, "newer=4", "sloppy"), service, "", ""},
		"block device":           {block, service, "spec.volumeMode", ""},
		"another port":           {nfsVolume(map[string]string{"share": "/a"}, "port=1"), service, "spec.mountOptions", ""},
		"port of a backend":      {nfsVolume(map[string]string{"share": "/a"}, "port=1"), perNode, "", ""},
		"no service":             {nfsVolume(map[string]string{"share": "/a"}), nil, "", "there is no NFSService storage/files"},
		"share is not probed":    {nfsVolume(map[string]string{"share": "/ab"}), service, "", `share "/ab" is not probed`},
		"server is ignored":      {nfsVolume(map[string]string{"share": "/a", "server": "10.0.0.9"}), service, "", "is ignored"},
	} {
		v := ValidateNFSVolume(test.volume, nil, NFSVolumeFacts{Key: key, Service: test.service})
		var fields []string
		for _, p := range v.Problems {
			fields = append(fields, p.Field)
		}
		warnings := strings.Join(v.Warnings, "\n")
		if strings.Join(fields, " ") != test.fields || !strings.Contains(warnings, test.warned) || test.warned == "" && warnings != "" {
			t.Errorf("%s: got %v, warnings %q", name, v.Problems, warnings)
		}
	}
}

// Binding a volume that is wrong already must work.
func TestUpdatesOfOtherFieldsPass(t *testing.T) {
	wrong := nfsVolume(map[string]string{"share": "a"})
	if v := ValidateNFSVolume(wrong, &wrong, NFSVolumeFacts{}); len(v.Problems) > 0 {
		t.Errorf("got %v", v.Problems)
	}
	changed := nfsVolume(map[string]string{"share": "a"}, "hard")
	if v := ValidateNFSVolume(changed, &wrong, NFSVolumeFacts{}); len(v.Problems) == 0 {
		t.Error("a change of mount options is not judged")
	}
}
