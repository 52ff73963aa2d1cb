package binaries

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	controlplane "github.com/fairlead-io/fairlead/e2e/controlplane"
	"github.com/fairlead-io/fairlead/e2e/controlplane/cachedir"
	"github.com/fairlead-io/fairlead/e2e/controlplane/manifests"
	"github.com/fairlead-io/fairlead/e2e/controlplane/progress"
)

// Ensure makes the cache complete: programs and manifests. When they are all
// there, nothing is said and nothing is run.
func Ensure(ctx context.Context, cache cachedir.Cache, report *progress.Reporter) error {
	versions, err := controlplane.WantedVersions()
	if err != nil {
		return err
	}
	components, err := Components(versions)
	if err != nil {
		return err
	}
	if missing, err := missingFrom(cache, components); err != nil || len(missing) == 0 && manifests.Present(cache.Manifests()) {
		return err
	}

	unlock, err := cachedir.Lock(ctx, filepath.Join(cache.Root, "lock"), func() {
		report.Printf("waiting for another build into %s", cache.Root)
	})
	if err != nil {
		return err
	}
	defer unlock()
	return complete(ctx, cache, components, report)
}

// complete does the work, once the lock is held. What is missing is looked at
// again: the previous holder of the lock has probably built it.
func complete(ctx context.Context, cache cachedir.Cache, components []Component, report *progress.Reporter) error {
	started := time.Now()
	if err := os.MkdirAll(cache.Bin(), 0o755); err != nil {
		return fmt.Errorf("making the cache folder: %w", err)
	}
	if err := removeLeftovers(cache.Bin()); err != nil {
		return err
	}
	missing, err := missingFrom(cache, components)
	if err != nil {
		return err
	}
	missing, err = adoptFound(ctx, cache, missing, report)
	if err != nil {
		return err
	}
	fetch := !manifests.Present(cache.Manifests())
	if len(missing) == 0 && !fetch {
		return nil
	}

	source, err := moduleSource()
	if err != nil {
		return err
	}
	total := len(missing)
	if fetch {
		total++
	}
	if len(missing) > 1 {
		report.Printf("building %d programs into %s; this takes minutes, once", len(missing), cache.Bin())
	}
	for i, component := range missing {
		what := fmt.Sprintf("building %s %s", component.Name, component.Version)
		err := report.Do(i+1, total, what, func() error {
			folder := source
			if component.OwnModule {
				folder = cache.KubernetesModule()
				if err := writeKubernetesModule(ctx, folder, component.Version); err != nil {
					return err
				}
			}
			return build(ctx, folder, component, cache.Binary(component.Name))
		})
		if err != nil {
			return fmt.Errorf("building %s: %w", component.Name, err)
		}
	}
	if fetch {
		err := report.Do(total, total, "fetching CRDs and stages", func() error {
			return manifests.Fetch(ctx, source, cache.Manifests())
		})
		if err != nil {
			return fmt.Errorf("fetching manifests: %w", err)
		}
	}
	report.Printf("control plane complete after %s", progress.Elapsed(time.Since(started)))
	return nil
}

func missingFrom(cache cachedir.Cache, components []Component) ([]Component, error) {
	var missing []Component
	for _, component := range components {
		ok, err := present(cache.Binary(component.Name))
		if err != nil {
			return nil, fmt.Errorf("looking for %s in the cache: %w", component.Name, err)
		}
		if !ok {
			missing = append(missing, component)
		}
	}
	return missing, nil
}

// adoptFound uses what is on this machine already and returns the rest.
func adoptFound(ctx context.Context, cache cachedir.Cache, wanted []Component, report *progress.Reporter) ([]Component, error) {
	folders := searchPath(os.Getenv)
	var rest []Component
	var problems []error
	for _, component := range wanted {
		path, found := locate(ctx, component, folders)
		if !found {
			rest = append(rest, component)
			continue
		}
		report.Printf("using %s", path)
		problems = append(problems, adopt(cache.Binary(component.Name), path))
	}
	return rest, errors.Join(problems...)
}
