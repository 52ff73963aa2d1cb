package status

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/clitest"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/datapath"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func look(t *testing.T, funcs interceptor.Funcs, all ...client.Object) View {
	t.Helper()
	live := clitest.Client(t, funcs, all...)
	v, err := Read(t.Context(), targetOf(t, live), clitest.Noon)
	must.Do(t, err)
	return v
}

func targetOf(t *testing.T, live client.Client) cli.Target {
	t.Helper()
	c, err := config.Load("")
	must.Do(t, err)
	return cli.Target{Longhorn: c.Longhorn, Configuration: c, Live: live, Reader: reads.NewReader(c.Longhorn.Names(), live, live)}
}

func TestStatusIsShown(t *testing.T) {
	cluster := "lab (https://127.0.0.1:6443)"
	fine, trouble := look(t, interceptor.Funcs{}, objects.HealthyCluster(clitest.Noon)...), look(t, interceptor.Funcs{}, objects.TroubledCluster(clitest.Noon)...)
	must.Check(t, fine.State == datapath.OK && trouble.State == datapath.Wrong, "states %s, %s", fine.State, trouble.State)
	for name, write := range map[string]func(io.Writer) error{
		"fine.txt": func(out io.Writer) error { writeStatus(out, fine, "fairlead", cluster, clitest.Noon); return nil },
		"trouble.txt": func(out io.Writer) error {
			writeStatus(out, trouble, "kubectl fairlead", cluster, clitest.Noon)
			return nil
		},
		"trouble.json": func(out io.Writer) error { return cli.WriteJSON(out, trouble) },
		"volumes.txt":  func(out io.Writer) error { writeVolumes(out, trouble.Longhorn.Volumes, nil, cluster); return nil },
		"volume.txt":   func(out io.Writer) error { writeVolume(out, trouble.Longhorn.Volumes[0], cluster); return nil },
		"idle.txt":     func(out io.Writer) error { writeVolume(out, trouble.Longhorn.Volumes[1], cluster); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			must.Do(t, write(&out))
			clitest.Golden(t, name, out.String())
		})
	}
}

// started has volume pvc-a just attached: its server was created a while ago and is not Ready.
func started(now time.Time, age time.Duration, state string) []client.Object {
	all := objects.HealthyCluster(now)
	for _, o := range all {
		switch o := o.(type) {
		case *corev1.Pod:
			if o.Name == "share-manager-pvc-a" {
				o.Status.Conditions, o.CreationTimestamp = nil, metav1.NewTime(now.Add(-age))
			}
		case *discoveryv1.EndpointSlice:
			o.Endpoints = nil
		case *longhorn.ShareManager:
			o.Status.State = state
		}
	}
	return append(all, objects.Attachment("pvc-a", "node-1", longhorn.DefaultNames().Driver))
}

func TestExitCodeTellsStartingServerFromFailedServer(t *testing.T) {
	for name, test := range map[string]struct {
		age   time.Duration
		state string
		want  error
	}{
		"starting":          {0, "starting", cli.ExitWaits},
		"failed":            {0, longhorn.ShareManagerError, cli.ExitWrong},
		"starting too long": {time.Hour, "starting", cli.ExitWrong},
	} {
		t.Run(name, func(t *testing.T) {
			server := clitest.ServeAPI(t, nil, started(time.Now(), test.age, test.state)...)
			for _, command := range [][]string{{"status"}, {"status", "volume", "pvc-a"}, {"volumes"}} {
				cmd := Command()
				if command[0] == "volumes" {
					cmd = VolumesCommand()
				}
				var out strings.Builder
				cmd.SetArgs(append(command[1:], "--kubeconfig", clitest.Kubeconfig(t, server)))
				cmd.SetOut(&out)
				cmd.SilenceErrors, cmd.SilenceUsage = true, true
				if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, test.want) {
					t.Errorf("%s: got %v, want %v\n%s", command, err, test.want, &out)
				}
				if waits := strings.Contains(out.String(), "server share-manager-pvc-a is starting: not Ready yet"); waits != (test.want == cli.ExitWaits) {
					t.Errorf("%s:\n%s", command, &out)
				}
			}
		})
	}
}

func TestClusterWithoutFairlead(t *testing.T) {
	v := look(t, interceptor.Funcs{})
	must.Equal(t, v.Installation.Findings, []string{"Fairlead is not installed in namespace fairlead-system: see docs/install.md"})
	must.Check(t, v.State == datapath.Wrong && v.Longhorn.Network.Phase == "Unknown" && len(v.Longhorn.Volumes) == 0, "got %+v", v)
}

// Regression: a record that can't be read hid everything else.
func TestMalformedRecordIsShown(t *testing.T) {
	all := objects.HealthyCluster(clitest.Noon)
	for _, o := range all {
		if record, ok := o.(*v1alpha1.NetworkRollout); ok {
			record.Status.Clients.Network = "garbage"
		}
	}
	v := look(t, interceptor.Funcs{}, all...)
	if p := v.Longhorn; v.State != datapath.Wrong || !strings.Contains(p.Network.Message, "status.clients.network of NetworkRollout longhorn") || len(p.Volumes) == 0 {
		t.Errorf("got %+v", v)
	}
}

// Pods on such a network do not start, however well those that run are.
func TestMissingOrBrokenNetworkIsWrong(t *testing.T) {
	const name = "NetworkAttachmentDefinition kube-system/storage-net"
	all := objects.HealthyCluster(clitest.Noon)
	problem := func(all []client.Object) string {
		v := look(t, interceptor.Funcs{}, all...)
		must.Equal(t, v.State, datapath.Wrong)
		return v.Longhorn.Network.Problem
	}
	for i, o := range all {
		network, ok := o.(*unstructured.Unstructured)
		if !ok || o.GetName() != "storage-net" {
			continue
		}
		must.Equal(t, problem(slices.Delete(slices.Clone(all), i, i+1)), "there is no "+name+", and pods on it do not start: create it")
		must.Do(t, unstructured.SetNestedField(network.Object, "{not json", "spec", "config"))
		must.Equal(t, problem(all), "the config of "+name+" is no CNI configuration, and pods on it do not start: correct it")
		return
	}
	t.Error("the cluster has no network")
}

// Regression: with a configuration that could not be read, a workload on a per-volume network was to be stopped.
func TestUnreadConfigurationStopsNoWorkload(t *testing.T) {
	commands := func(unsure bool) (commands []string) {
		live := clitest.Client(t, interceptor.Funcs{}, objects.TroubledCluster(clitest.Noon)...)
		target := targetOf(t, live)
		target.Unsure = unsure
		v, err := Read(t.Context(), target, clitest.Noon)
		must.Do(t, err)
		for _, p := range v.Longhorn.Volumes {
			for _, h := range p.Hops {
				if h.Command != "" {
					commands = append(commands, h.Command)
				}
			}
		}
		return commands
	}
	must.Check(t, slices.ContainsFunc(commands(false), func(c string) bool { return c != "fairlead check" }), "the cluster has no other advice")
	must.Equal(t, slices.Compact(commands(true)), []string{"fairlead check"})
}

// An age that grows is nothing new.
func TestWatchPrintsChangesOnly(t *testing.T) {
	v := look(t, interceptor.Funcs{}, objects.HealthyCluster(clitest.Noon)...)
	later := v
	later.LostNodes = []LostNode{{Node: "node-1"}}
	must.True(t, !reading{view: v, text: "lost for 2s"}.differs(reading{view: v, text: "lost for 4s"}), "only the age differs")
	must.True(t, !reading{view: v, text: "same"}.differs(reading{view: later, text: "same"}), "only what is not shown differs")
	must.True(t, reading{view: later, text: "lost for 0s"}.differs(reading{view: v, text: "fine"}), "a node is lost")
}

func TestUnknownVolumeIsAnError(t *testing.T) {
	if _, err := look(t, interceptor.Funcs{}, objects.HealthyCluster(clitest.Noon)...).Find("pvc-x"); !errors.Is(err, errNoVolume) || !strings.Contains(err.Error(), "did you mean pvc-a, pvc-b?") {
		t.Errorf("got %v", err)
	}
}

func TestShellCompletesSharedVolumes(t *testing.T) {
	server := clitest.ServeAPI(t, nil, objects.LonghornVolume("pvc-b", "", objects.RWX), objects.LonghornVolume("pvc-rwo", ""), objects.LonghornVolume("pvc-a", "", objects.RWX))
	out := clitest.Output(t, nil, func(out io.Writer) error {
		cmd := Command()
		cmd.SetArgs([]string{"__complete", "volume", "--kubeconfig", clitest.Kubeconfig(t, server), ""})
		cmd.SetOut(out)
		return cmd.ExecuteContext(t.Context())
	})
	must.Check(t, strings.HasPrefix(out, "pvc-a\npvc-b\n:"), "got %q", out)
}

func TestNoValueSteersTerminalOfStatus(t *testing.T) {
	v := clitest.Spoiled[View]()
	for i := range v.Longhorn.Volumes {
		v.Longhorn.Volumes[i].State = datapath.Wrong
	}
	clitest.CheckSafe(t, v, func(out io.Writer) error { writeStatus(out, v, "fairlead", clitest.Hostile, clitest.Noon); return nil })
	volume := clitest.Spoiled[datapath.Path]()
	clitest.CheckSafe(t, volume, func(out io.Writer) error { writeVolume(out, volume, clitest.Hostile); return nil })
	clitest.CheckSafe(t, volume, func(out io.Writer) error {
		writeVolumes(out, []datapath.Path{volume}, []string{clitest.Hostile}, clitest.Hostile)
		return nil
	})
}

func TestPlannersMayReadStatus(t *testing.T) {
	funcs, reads := clitest.CheckReads(t, map[string]string{
		"base": "fairlead-planner", "components/fencing": "fairlead-fence-viewer", "components/nfs": "fairlead-nfs-viewer",
	})
	look(t, funcs, objects.TroubledCluster(clitest.Noon)...)
	must.Check(t, reads["endpointslices"] && reads["sharemanagers"] && reads["nodefences"] && reads["nfsservices"], "only these were read: %v", reads)
}
