package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/go-chi/chi/v5"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/mutators"
)

// Entries of the webhook configurations: the names that rules have in paths,
// metrics and logs.
const (
	entryClientPods     = "client-pods"
	entryServerPods     = "server-pods"
	entryClientTemplate = "client-template"
	entryServices       = "services"
	entryShareManagers  = "sharemanagers"
	entrySettingStatus  = "setting-status"
	entrySettings       = "settings"
	entryNetworks       = "networks"
	entryVolumeNetworks = "volume-networks"
	entryStraySettings  = "stray-settings"

	entryInstanceManagerDeletions = "instance-manager-deletions"

	// Those of fencing.
	entryAttachmentMarks    = "attachment-marks"
	entryAttachments        = "attachments"
	entryNodes              = "nodes"
	entryNodeFenceOverrides = "nodefence-overrides"
	entryNodeFences         = "nodefences"
	entryWorkloadPods       = "workload-pods"

	// Those of NFS services.
	entryNFSServices      = "nfs-services"
	entryNFSVolumes       = "nfs-volumes"
	entryNFSVolumeOptions = "nfs-volume-options"
)

func mutatePath(profile, entry string) string   { return "/mutate/" + profile + "/" + entry }
func validatePath(profile, entry string) string { return "/validate/" + profile + "/" + entry }

// These have no profile: a network may be used by several, and which one a claim
// is of is not written on it.
const (
	networksPath       = "/validate/" + entryNetworks
	volumeNetworksPath = "/validate/" + entryVolumeNetworks
	straySettingsPath  = "/validate/" + entryStraySettings

	// One entry is for all storage systems that are fenced: they are told apart by driver.
	attachmentMarksPath    = "/mutate/" + entryAttachmentMarks
	attachmentsPath        = "/validate/" + entryAttachments
	nodesPath              = "/validate/" + entryNodes
	nodeFenceOverridesPath = "/mutate/" + entryNodeFenceOverrides
	nodeFencesPath         = "/validate/" + entryNodeFences
	workloadPodsPath       = "/mutate/" + entryWorkloadPods

	nfsServicesPath      = "/validate/" + entryNFSServices
	nfsVolumesPath       = "/validate/" + entryNFSVolumes
	nfsVolumeOptionsPath = "/mutate/" + entryNFSVolumeOptions
)

// routes registers rules.
type routes struct {
	chi.Router
	door    *door
	metrics *Metrics
	log     *slog.Logger
}

// NewRouter serves the rules of all profiles, the gates of fencing and the rules
// of NFS services; without any, nil, those let everything pass.
func NewRouter(c *config.Configuration, profiles []Profile, fencing *Fencing, nfs *NFS, metrics *Metrics, log *slog.Logger) http.Handler {
	r := routes{chi.NewRouter(), newDoor(), metrics, log}
	r.Use(recoverer(log))
	var told, asked, judged []Profile
	for _, p := range profiles {
		pods, services := p.Duties.Pods == config.On, p.Duties.Services == config.On
		// Where the storage system rolls out by itself, clients stay as it builds them.
		clients := pods && p.Duties.Settings == config.Apply
		serve(r, mutatePath(p.Name, entryClientPods), clients, p.clientPods())
		serve(r, mutatePath(p.Name, entryClientTemplate), clients, p.clientTemplate())
		serve(r, mutatePath(p.Name, entryServerPods), pods, p.serverPods())
		serve(r, mutatePath(p.Name, entryServices), services, p.services())
		serve(r, mutatePath(p.Name, entryShareManagers), services, p.shareManagers(c.ClusterDomain))
		serve(r, mutatePath(p.Name, entrySettingStatus), p.Duties.Settings == config.Apply, p.settingStatus())
		serve(r, validatePath(p.Name, entrySettings), p.Duties.Settings != config.Off, p.settings(c.Networks.Missing))
		if p.Duties.Settings != config.Off {
			judged = append(judged, p)
		}
		serve(r, validatePath(p.Name, entryInstanceManagerDeletions), p.Duties.Settings != config.Off, p.instanceManagerDeletions())
		if p.Duties.Networks == config.On {
			told = append(told, p)
		}
		if p.Duties.ServesVolumeNetworks() {
			asked = append(asked, p)
		}
	}
	serve(r, straySettingsPath, len(judged) > 0, straySettings(judged))
	serve(r, networksPath, len(told) > 0, networks(told, c.Networks.InUse))
	serve(r, volumeNetworksPath, len(asked) > 0, volumeNetworks(asked, c.Networks.Missing))
	fencing.routes(r)
	nfs.routes(r)
	return r
}

// serve registers a rule. The rule of a duty that is off lets everything pass,
// so that a registration that is still there does no harm.
func serve[V any](r routes, path string, on bool, rule rule[V]) {
	if !on {
		rule.decide = func(context.Context, *Request[V]) (Decision, error) {
			return Decision{Outcome: string(mutators.Unchanged), Reason: "duty is off"}, nil
		}
	}
	r.Method(http.MethodPost, path, handle(rule, r.door, r.metrics, r.log))
}

// recoverer answers a panic with an error, so that the failure policy rules and
// the server lives on.
func recoverer(log *slog.Logger) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if p := recover(); p != nil {
					if p == http.ErrAbortHandler {
						panic(p)
					}
					log.Error("panic", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
					http.Error(w, "internal error, see Fairlead's log", http.StatusInternalServerError)
				}
			}()
			next.ServeHTTP(w, r)
		})
	}
}
