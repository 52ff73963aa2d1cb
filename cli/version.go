package cli

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/webhook/registration"
)

// versionTimeout is for the cluster, which may be out of reach.
const versionTimeout = 5 * time.Second

// VersionCommand prints the version of the program, and of Fairlead in the cluster if it can be read.
func VersionCommand() *cobra.Command {
	o := &ClientOptions{}
	only := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program, and of Fairlead in the cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "fairlead %s %s %s/%s\n", Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if only {
				return nil
			}
			deployments, err := o.deployments(cmd)
			switch {
			case err != nil:
				WriteLine(cmd.ErrOrStderr(), "the version in the cluster could not be read: %v", err)
			case len(deployments) == 0:
				WriteLine(out, "cluster: Fairlead is not installed")
			}
			for _, d := range deployments {
				WriteLine(out, "cluster: %s %s", d.Name, imageOf(d))
			}
			return nil
		},
	}
	o.SetupCluster(cmd)
	_ = cmd.PersistentFlags().MarkHidden("output") // there is one form of output
	cmd.Flags().BoolVar(&only, "client", false, "print the version of this program only")
	return cmd
}

// deployments of Fairlead in the cluster.
func (o *ClientOptions) deployments(cmd *cobra.Command) ([]appsv1.Deployment, error) {
	live, err := o.connect(versionTimeout)
	if err != nil {
		return nil, err
	}
	var list appsv1.DeploymentList
	err = live.List(cmd.Context(), &list, client.InNamespace(registration.Namespace), client.MatchingLabels{"app.kubernetes.io/name": "fairlead"})
	return list.Items, err
}

// imageOf is the image of the first container, without its registry.
func imageOf(d appsv1.Deployment) string {
	if len(d.Spec.Template.Spec.Containers) == 0 {
		return ""
	}
	image := d.Spec.Template.Spec.Containers[0].Image
	return image[strings.LastIndexAny(image, "/")+1:]
}
