package validators

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func nfsService(exposure string, changes ...func(*NFSService)) NFSService {
	var s NFSService
	s.Metadata.Namespace, s.Metadata.Name = "storage", "files"
	s.Spec.Exposure, s.Spec.Backends = exposure, []v1alpha1.NFSBackend{{Address: "10.0.0.1"}, {Address: "10.0.0.2"}}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func fields(problems field.ErrorList) string {
	var list []string
	for _, p := range problems {
		list = append(list, p.Field)
	}
	return strings.Join(list, " ")
}

func TestAllProblemsOfAnNFSServiceAreReported(t *testing.T) {
	s := nfsService("", func(s *NFSService) {
		s.Spec.Backends[0].Address, s.Spec.Shares = "nfs.example.com", []string{"exports"}
	})
	v := ValidateNFSService(s, nil, false)
	got := fields(v.Problems)
	must.Check(t, got == "spec.backends[0].address spec.shares[0]" && v.Reason == ReasonInvalidNFSService, "got %s, %s", got, v.Reason)
	text := v.Problems.ToAggregate().Error()
	for _, want := range []string{"spec.backends[0].address: Invalid value: ", "not an IP address", `write "/exports"`} {
		must.Check(t, strings.Contains(text, want), "no %q in %s", want, text)
	}
}

func TestUpdatesOfNFSServices(t *testing.T) {
	old := nfsService("PerNodeStable", func(s *NFSService) { s.Status.Slots = make([]v1alpha1.NFSSlotStatus, 8) })
	more := func(s *NFSService) {
		s.Spec.Backends = append(s.Spec.Backends, v1alpha1.NFSBackend{Address: "10.0.0.3"})
	}
	for name, test := range map[string]struct {
		change  func(*NFSService)
		mounted bool
		field   string
	}{
		"nothing":               {func(*NFSService) {}, true, ""},
		"another backend":       {more, true, ""},
		"slots lowered":         {func(s *NFSService) { s.Spec.Slots = ptr.To[int32](7) }, true, ""},
		"slots raised":          {func(s *NFSService) { s.Spec.Slots = ptr.To[int32](9) }, true, ""},
		"port while mounted":    {func(s *NFSService) { s.Spec.Port = 2050 }, true, "spec.port"},
		"port, mounted nowhere": {func(s *NFSService) { s.Spec.Port = 2050 }, false, ""},
	} {
		updated := nfsService("", test.change)
		v := ValidateNFSService(updated, &old, test.mounted)
		must.Check(t, fields(v.Problems) == test.field && (v.Reason == ReasonValid) == (test.field == ""), "%s: got %+v", name, v)
		must.Equal(t, updated.ChangesPort(old), strings.HasPrefix(name, "port"), "%s: changes the port", name)
	}
}

func TestDrainOfMountedBackendWarns(t *testing.T) {
	old := nfsService("PerNode", func(s *NFSService) {
		s.Status.Backends = []v1alpha1.NFSBackendStatus{{Address: "10.0.0.1:2049", Source: "static", Nodes: 3}}
	})
	drained := nfsService("PerNode", func(s *NFSService) { s.Spec.Backends[0].Drain = true })
	v := ValidateNFSService(drained, &old, true)
	must.Check(t, len(v.Problems) == 0 && len(v.Warnings) == 1 && strings.Contains(v.Warnings[0], "mounted by 3 nodes"), "got %+v", v)
}

func TestDeletionOfMountedServiceNamesNodes(t *testing.T) {
	var use NFSServiceUse
	for i := range 7 {
		use.Mounts = append(use.Mounts, NFSMount{Node: fmt.Sprintf("node-%d", i%4), PersistentVolume: fmt.Sprintf("pv-%d", i)})
	}
	checkVerdict(t, ValidateNFSServiceDeletion(nfsService(""), use), ReasonNFSServiceInUse, []string{
		"status.nodes: Forbidden: volumes of NFSService storage/files are attached to 4 nodes: node-0 (pv-0), node-1 (pv-1), node-2 (pv-2), and 4 more. " +
			"Their mounts would hang without its addresses. Delete the pods that use these volumes, wait until the VolumeAttachments are gone, then delete the NFSService; fairlead nfs storage/files lists the nodes",
	}, nil)
	checkVerdict(t, ValidateNFSServiceDeletion(nfsService(""), NFSServiceUse{Volumes: []string{"pv-a"}}), ReasonValid, nil, []string{
		"NFSService storage/files still has 1 PersistentVolume: pv-a. Pods that use them wait until an NFSService of this name exists again",
	})
	checkVerdict(t, ValidateNFSServiceDeletion(nfsService(""), NFSServiceUse{}), ReasonValid, nil, nil)
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
	type attributes = map[string]string
	block := nfsVolume(attributes{"share": "/a"})
	block.Spec.VolumeMode = "Block"
	reading := func(options []string, modes ...string) volume.View {
		v := nfsVolume(attributes{"share": "/a"}, options...)
		v.Spec.AccessModes = modes
		return v
	}
	reclaimed := func(policy string) volume.View {
		v := nfsVolume(attributes{"share": "/a"})
		v.Spec.Reclaim = policy
		return v
	}
	readOnly := func(options ...string) volume.View {
		v := nfsVolume(attributes{"share": "/a"}, options...)
		v.Spec.CSI.ReadOnly = true
		return v
	}
	for name, test := range map[string]struct {
		volume  volume.View
		service *v1alpha1.NFSService
		// fields with problems, and words of the warnings.
		fields, warned string
	}{
		"well formed":           {nfsVolume(attributes{"share": "/a/b", "subdir": "${pvc.metadata.name}", "csi.storage.k8s.io/pvc/name": "data"}, "vers=4.1,read_ahead_kb=15360"), service, "", ""},
		"several problems":      {nfsVolume(attributes{"share": "a", "mountPermissions": "9"}, "vers=5"), service, "spec.csi.volumeAttributes[share] spec.csi.volumeAttributes[mountPermissions] spec.mountOptions[0]", ""},
		"unknown option":        {nfsVolume(attributes{"share": "/a"}, "nconect=4"), service, "spec.mountOptions", ""},
		"block device":          {block, service, "spec.volumeMode", ""},
		"another port":          {nfsVolume(attributes{"share": "/a"}, "port=1"), service, "spec.mountOptions", ""},
		"port of a backend":     {nfsVolume(attributes{"share": "/a"}, "port=1"), perNode, "", ""},
		"subdir without names":  {nfsVolume(attributes{"share": "/a", "subdir": "${pvc.metadata.name}"}), service, "spec.csi.volumeAttributes[subdir]", ""},
		"version 3, no service": {nfsVolume(attributes{"share": "/a"}, "vers=3,nolock"), nil, "", "NFSv3 needs an NFSService"},
		"no service":            {nfsVolume(attributes{"share": "/a"}), nil, "", "there is no NFSService storage/files"},
		"share is not probed":   {nfsVolume(attributes{"share": "/ab"}), service, "", `share "/ab" is not probed: NFSService storage/files names "/a"; add`},
		"no share is named":     {nfsVolume(attributes{"share": "/ab"}), &v1alpha1.NFSService{Spec: v1alpha1.NFSServiceSpec{Backends: service.Spec.Backends}}, "", ""},
		"server is ignored":     {nfsVolume(attributes{"share": "/a", "server": "10.0.0.9"}), service, "", "is ignored"},
		"only for reading":      {reading(nil, "ReadOnlyMany"), service, "", "does not make mounts read-only"},
		"csi.readOnly":          {readOnly(), service, "", "spec.csi.readOnly does not make mounts read-only"},
		"csi.readOnly, ro":      {readOnly("ro"), service, "", ""},
		"reclaim: Delete":       {reclaimed("Delete"), service, "", "ends as Failed once its claim is gone"},
		"reclaim: Retain":       {reclaimed("Retain"), service, "", ""},
		"unknown attribute":     {nfsVolume(attributes{"share": "/a", "subDirectory": "b"}), service, "", `attribute "subDirectory" has no effect: the driver reads service, share, subdir`},
		"added by Kubernetes":   {nfsVolume(attributes{"share": "/a", "storage.kubernetes.io/csiProvisionerIdentity": "1"}), service, "", ""},
		"read and write":        {reading(nil, "ReadOnlyMany", "ReadWriteMany"), service, "", ""},
		"mounted with ro":       {reading([]string{"ro"}, "ReadOnlyMany"), service, "", ""},
		"version 3, locks":      {nfsVolume(attributes{"share": "/a"}, "vers=3"), perNode, "spec.mountOptions", ""},
		"version 3, Services":   {nfsVolume(attributes{"share": "/a"}, "vers=3,nolock"), service, "spec.mountOptions", ""},
		"version 3, nolock":     {nfsVolume(attributes{"share": "/a"}, "vers=3,nolock"), perNode, "", ""},
		"propagation":           {nfsVolume(attributes{"share": "/a"}, "rshared", "sloppy"), service, "spec.mountOptions[0]", ""},
		"sloppy allows option":  {nfsVolume(attributes{"share": "/a"}, "newer=4", "sloppy"), service, "", ""},
	} {
		v := ValidateNFSVolume(test.volume, nil, NFSVolumeFacts{Key: types.NamespacedName{Namespace: "storage", Name: "files"}, Service: test.service})
		warnings := strings.Join(v.Warnings, "\n")
		must.Check(t, fields(v.Problems) == test.fields && strings.Contains(warnings, test.warned) && (test.warned != "" || warnings == ""),
			"%s: got %v, warnings %q", name, v.Problems, warnings)
		must.Check(t, (v.Reason == ReasonNoNFSService) == (test.service == nil) && (len(v.Warnings) == 2) == (name == "version 3, no service"), "%s: got %+v", name, v)
	}
	unknown := ValidateNFSVolume(nfsVolume(attributes{"share": "/a"}), nil, NFSVolumeFacts{Service: service, KeyProblem: errors.New("no name")})
	must.Equal(t, fields(unknown.Problems), "spec.csi.volumeAttributes["+volume.ServiceAttribute+"]", "key unknown")
}

func TestStatdAllowsLocksOfVersion3(t *testing.T) {
	for statd, want := range map[bool]int{false: 1, true: 0} {
		v := ValidateNFSVolume(nfsVolume(map[string]string{"share": "/a"}, "vers=3"), nil, NFSVolumeFacts{Statd: statd})
		must.Equal(t, len(v.Problems), want, "statd %t: %v", statd, v.Problems)
	}
}

// A volume that is wrong already can be bound.
func TestUpdatesOfOtherFieldsPass(t *testing.T) {
	wrong := nfsVolume(map[string]string{"share": "a"})
	must.Equal(t, len(ValidateNFSVolume(wrong, &wrong, NFSVolumeFacts{}).Problems), 0, "problems")
	must.Check(t, len(ValidateNFSVolume(nfsVolume(map[string]string{"share": "a"}, "hard"), &wrong, NFSVolumeFacts{}).Problems) > 0, "a change of mount options is not checked")
}
