package standin

import (
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin/release"
)

// ofEngine is what a setting says for one data engine: GetSettingValueExistedByDataEngine in datastore/longhorn.go.
func ofEngine(value, engine string) string {
	if !strings.HasPrefix(value, "{") {
		return value
	}
	var engines map[string]string
	if err := json.Unmarshal([]byte(value), &engines); err != nil {
		return ""
	}
	return engines[engine]
}

func ofV2(value string) string { return ofEngine(value, engineV2) }

func decimal(value string) string {
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	if err != nil {
		return value
	}
	return strconv.FormatInt(n, 10)
}

// buildManager gives an instance manager what it has from v1.10 on, of both data engines.
func (v settingValues) buildManager(pod *corev1.Pod) {
	container := &pod.Spec.Containers[0]
	if seconds, err := strconv.ParseInt(v[release.ManagerProbe], 10, 32); err == nil {
		container.LivenessProbe.TimeoutSeconds, container.LivenessProbe.PeriodSeconds = int32(seconds), int32(seconds)+1
	}
	if directory, has := v[release.LogPath]; has {
		const name = "log"
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: directory, Type: ptr.To(corev1.HostPathDirectoryOrCreate)},
		}})
	}
}

// logsOf is the directory that a pod writes its logs to, if it has one.
func logsOf(pod *corev1.Pod) string {
	for _, volume := range pod.Spec.Volumes {
		if volume.Name == "log" && volume.HostPath != nil {
			return volume.HostPath.Path
		}
	}
	return ""
}
