package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	controlplane "github.com/fairlead-io/fairlead/e2e/controlplane"
	"github.com/fairlead-io/fairlead/e2e/controlplane/process"
	"github.com/fairlead-io/fairlead/e2e/controlplane/progress"
)

// Run runs a control plane until the context ends, which is the ordinary way to
// stop it, or until a part of it fails. It calls ready once everything works.
// When it returns, nothing that it started is left. Components are killed: their data is
// not read again.
func Run(ctx context.Context, options Options, report *progress.Reporter, ready func(State)) error {
	files := layout{options.Dir}
	prepared, err := prepare(files, options)
	if err != nil {
		return err
	}
	versions, err := controlplane.WantedVersions()
	if err != nil {
		return err
	}

	group := process.NewGroup()
	asked := ctx
	ctx, fail := context.WithCancelCause(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	defer group.Kill()
	defer fail(nil)
	go watchDeaths(ctx, group, fail)

	state, err := starter{
		setup: prepared, group: group, report: report, versions: versions,
		background: func(name string, run func(context.Context) error) {
			background.Go(func() {
				if err := run(ctx); err != nil {
					fail(fmt.Errorf("%s failed: %w", name, err))
				}
			})
		},
	}.start(ctx)
	if err == nil {
		ready(state)
		<-ctx.Done()
	}

	// Nobody should take the control plane for ready while it is being stopped.
	_ = os.Remove(files.ready())
	switch cause := context.Cause(ctx); {
	case asked.Err() != nil && err != nil:
		return errors.New("stopped before it was ready")
	case asked.Err() != nil:
		return nil
	case cause != nil:
		// The death of a component says more than the step that it broke.
		return cause
	default:
		return err
	}
}

// prepare makes the folder. The folder of another run is refused: its files would be misread.
func prepare(files layout, options Options) (setup, error) {
	if err := os.MkdirAll(files.dir, 0o755); err != nil {
		return setup{}, fmt.Errorf("making the folder: %w", err)
	}
	// etcd insists on a data folder that only its user can read.
	if err := os.Mkdir(files.etcdData(), 0o700); errors.Is(err, fs.ErrExist) {
		return setup{}, fmt.Errorf("%s has the files of another control plane: name another folder, or remove it", files.dir)
	} else if err != nil {
		return setup{}, fmt.Errorf("making etcd's folder: %w", err)
	}
	ports, err := choosePorts()
	if err != nil {
		return setup{}, err
	}
	credentials, err := issue(files, options, ports)
	if err != nil {
		return setup{}, err
	}
	return setup{options: options, files: files, ports: ports, credentials: credentials}, nil
}

func watchDeaths(ctx context.Context, group *process.Group, fail context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
	case dead := <-group.Deaths():
		fail(describeDeath(dead))
	}
}

// describeDeath shows the end of the component's log, which nearly always has
// the reason.
func describeDeath(dead *process.Process) error {
	const lines = 20
	how := "ended with exit status 0"
	if err := dead.Err(); err != nil {
		how = "died: " + err.Error()
	}
	tail, err := process.Tail(dead.Spec.Log, lines)
	if err != nil {
		tail = err.Error()
	}
	return fmt.Errorf("%s %s\nlast lines of %s:\n%s", dead.Spec.Name, how, dead.Spec.Log, tail)
}
