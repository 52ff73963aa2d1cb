package volume

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/options"
)

// Attributes of a volume. All but ServiceAttribute are read in any case, as the GKE driver does.
const (
	// ServiceAttribute names the NFSService: <namespace>/<name>.
	ServiceAttribute          = "service"
	ShareAttribute            = "share"
	SubDirAttribute           = "subdir"
	MountOptionsAttribute     = "mountOptions"
	MountPermissionsAttribute = "mountPermissions"
	// ServerAttribute is csi-driver-nfs' server. It is ignored, as the GKE driver ignores it.
	ServerAttribute = "server"
)

// MaxPermissions of a directory: rwx for all, setuid, setgid and sticky.
const MaxPermissions = 0o7777

// Volume is what a volume asks for.
type Volume struct {
	// Share that the server exports, and SubDir below it with its variables replaced.
	Share, SubDir string
	// Permissions that the mounted directory is given; 0: left as they are.
	Permissions uint32
	// Options of the mount: those of the attributes and those of the PersistentVolume.
	Options options.Options
	// Server is the ignored attribute server.
	Server string
}

// Read returns what a volume asks for, and all problems. field is the path of the
// attributes, mountField of the mount options.
func Read(field string, attributes map[string]string, mountField string, mountOptions []string) (Volume, nfs.Problems) {
	var problems nfs.Problems
	var v Volume
	values := map[string]string{}
	for key, variable := range nameKeys {
		values[variable] = attributes[key]
	}
	folded, found := fold(field, attributes)
	problems = append(problems, found...)
	add := func(attribute string, err error) {
		if err != nil {
			problems.Add(key(field, attribute), "%s", err)
		}
	}
	var err error
	v.Share, err = options.ParseShare(folded[strings.ToLower(ShareAttribute)])
	add(ShareAttribute, err)
	v.SubDir, err = options.ParseSubDir(folded[strings.ToLower(SubDirAttribute)], values)
	add(SubDirAttribute, err)
	v.Permissions, err = parsePermissions(folded[strings.ToLower(MountPermissionsAttribute)])
	add(MountPermissionsAttribute, err)
	v.Server = folded[strings.ToLower(ServerAttribute)]
	v.Options, found = readOptions(key(field, MountOptionsAttribute), folded[strings.ToLower(MountOptionsAttribute)], mountField, mountOptions)
	return v, append(problems, found...)
}

// readOptions joins the options of the attribute with those of the PersistentVolume.
// Where they contradict, that is a problem of the attribute.
func readOptions(field, attribute, mountField string, mountOptions []string) (options.Options, nfs.Problems) {
	own, problems := options.Parse(mountField, mountOptions)
	if attribute == "" {
		return own, problems
	}
	_, found := options.Parse(field, []string{attribute})
	problems = append(problems, found...)
	if len(problems) > 0 {
		return own, problems
	}
	joined, found := options.Parse(field, append(append([]string{}, mountOptions...), attribute))
	for _, p := range found {
		problems.Add(field, "%s", p.Message)
	}
	return joined, problems
}

// nameKeys are the attributes with the names that replace variables in the sub-directory, as csi-provisioner writes them with
// --extra-create-metadata.
var nameKeys = map[string]string{
	"csi.storage.k8s.io/pvc/name": options.VariablePVCName, "csi.storage.k8s.io/pvc/namespace": options.VariablePVCNamespace,
	"csi.storage.k8s.io/pv/name": options.VariablePVName,
}

// Attributes are those that the driver acts on.
func Attributes() []string {
	return []string{ServiceAttribute, ShareAttribute, SubDirAttribute, MountOptionsAttribute, MountPermissionsAttribute}
}

// Unread are the names of attributes that have no effect, sorted. Those that Kubernetes adds are not among them, nor is the
// server, of which the caller says more.
func Unread(attributes map[string]string) (names []string) {
	known := append(Attributes(), ServerAttribute)
	for name := range attributes {
		isKnown := slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
		if prefix, _, _ := strings.Cut(name, "/"); !isKnown && prefix != "csi.storage.k8s.io" && prefix != "storage.kubernetes.io" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Service returns the NFSService of a volume: the one that its attributes name,
// else the driver's default. It fails where neither names one.
func Service(attributes map[string]string, driverDefault types.NamespacedName) (types.NamespacedName, error) {
	text, ok := attributes[ServiceAttribute]
	if !ok && driverDefault.Name != "" {
		return driverDefault, nil
	}
	if !ok {
		return types.NamespacedName{}, fmt.Errorf("the volume names no NFSService, and its driver has no default: add the attribute %s: <namespace>/<name>", ServiceAttribute)
	}
	return ParseService(text)
}

// ParseService reads <namespace>/<name>.
func ParseService(text string) (types.NamespacedName, error) {
	namespace, name, _ := strings.Cut(text, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return types.NamespacedName{}, fmt.Errorf("%q is not the name of an NFSService: write <namespace>/<name>", text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// parsePermissions reads permissions in octal, such as 0775; none is 0.
func parsePermissions(text string) (uint32, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > MaxPermissions {
		return 0, fmt.Errorf("%q is not a file mode: write octal digits from 0 to %o, such as 0775", text, MaxPermissions)
	}
	return uint32(n), nil
}

// fold returns the attributes by their names in lower case. CSI's own, with a
// slash in their names, are left out.
func fold(field string, attributes map[string]string) (map[string]string, nfs.Problems) {
	var problems nfs.Problems
	folded, spelled := map[string]string{}, map[string]string{}
	for _, name := range sortedKeys(attributes) {
		lower := strings.ToLower(name)
		if strings.Contains(name, "/") {
			continue
		}
		if lower == ServiceAttribute && name != ServiceAttribute {
			problems.Add(key(field, name), "write the attribute's name in lower case: %s", ServiceAttribute)
			continue
		}
		if other, ok := spelled[lower]; ok && folded[lower] != attributes[name] {
			problems.Add(key(field, name), "the attribute %s is there too, with another value: remove one of them", other)
			continue
		}
		folded[lower], spelled[lower] = attributes[name], name
	}
	return folded, problems
}

// key is the path of an entry of a map.
func key(field, name string) string { return fmt.Sprintf("%s[%s]", field, name) }

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
