package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settingsapi"
)

func settingsCommand() *cobra.Command {
	o := &clientOptions{}
	cmd := &cobra.Command{
		Use:   "settings [name]",
		Short: "Show the settings of the danger zone: what is in force, what is applied, what waits",
		Long: `Show the settings of the danger zone: what is in force, what is applied, what waits.

With a name, show all of one setting. The command reads settings.fairlead.io and
settings.longhorn.io, and Fairlead's configuration: ConfigMap fairlead in namespace
fairlead-system, or the file of --config. ClusterRole fairlead-settings-viewer allows
this, if it is bound in the storage system's namespace and in fairlead-system.`,
		Example: "  fairlead settings\n  fairlead settings storage-network\n  fairlead settings -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := o.open(cmd.Context())
			if err != nil {
				return err
			}
			p.noteDefaults(cmd.ErrOrStderr())
			return explain(showSettings(cmd.Context(), cmd.OutOrStdout(), p, o.output, args))
		},
	}
	o.setup(cmd)
	return cmd
}

func showSettings(ctx context.Context, out io.Writer, p place, output string, names []string) error {
	if len(names) > 0 {
		if _, err := lookup(names[0]); err != nil {
			return err
		}
	}
	states, unknown, err := p.reader.SettingStates(ctx)
	if err != nil {
		return err
	}
	// One that is asked for by name is shown wherever it belongs.
	states = slices.DeleteFunc(states, func(s cluster.SettingState) bool {
		return len(names) == 0 && !s.DangerZone || len(names) > 0 && string(s.Name) != names[0]
	})
	shown := settingsapi.DescribeAll(states, unknown, p.Storage())
	switch {
	case output == outputJSON && len(names) > 0:
		return writeJSON(out, shown.Data[0])
	case output == outputJSON:
		return writeJSON(out, shown)
	case len(names) > 0:
		return writeSetting(out, shown.Data[0], time.Now())
	}
	if err := writeSettings(out, shown.Data, time.Now()); err != nil || len(unknown) == 0 {
		return err
	}
	writeLine(out, "%s", catalog.UnknownMessage(p.Name, unknown))
	return nil
}

var errUnknownSetting = errors.New("no setting that Fairlead knows")

// lookup finds a setting; its error lists those that there are.
func lookup(name string) (catalog.Definition, error) {
	d, known := catalog.Lookup(name)
	if !known {
		text := ""
		for _, d := range catalog.All() {
			text += "\n  " + string(d.Name)
		}
		return d, fmt.Errorf("%q: %w; it knows:%s", name, errUnknownSetting, text)
	}
	return d, nil
}

func writeJSON(out io.Writer, value any) error {
	var document bytes.Buffer
	encoder := json.NewEncoder(&document)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	if _, err := out.Write(escaped(document.Bytes())); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}
