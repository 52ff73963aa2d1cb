{{- /* Which processes there are. Each template is empty for no. */}}
{{- define "fairlead.webhook" -}}
{{- if or .Values.longhorn.enabled .Values.fencing.enabled .Values.nfs.enabled }}yes{{ end }}
{{- end }}

{{- define "fairlead.controller" -}}
{{- if or .Values.longhorn.enabled .Values.fencing.enabled }}yes{{ end }}
{{- end }}

{{- define "fairlead.csiController" -}}
{{- if or .Values.nfs.enabled .Values.ondat.enabled }}yes{{ end }}
{{- end }}

{{- define "fairlead.certManager" -}}
{{- if and (include "fairlead.webhook" .) (eq .Values.tls.source "certManager") }}yes{{ end }}
{{- end }}

{{- define "fairlead.selfSigned" -}}
{{- if and (include "fairlead.webhook" .) (eq .Values.tls.source "selfSigned") }}yes{{ end }}
{{- end }}

{{- /* An image by its digest or tag: (list . IMAGE). */}}
{{- define "fairlead.image" -}}
{{- $image := index . 1 }}
{{- if $image.digest }}{{ $image.repository }}@{{ $image.digest }}
{{- else }}{{ $image.repository }}:{{ default (index . 0).Chart.AppVersion $image.tag }}
{{- end }}
{{- end }}

{{- /* Fairlead's configuration: what the values say, and over it what .Values.configuration says. */}}
{{- define "fairlead.configuration" -}}
{{- $c := dict "apiVersion" "config.fairlead.io/v1alpha1" "kind" "Configuration" }}
{{- if .Values.longhorn.enabled }}
{{- $longhorn := dict }}
{{- if ne .Values.longhorn.namespace "longhorn-system" }}{{ $_ := set $longhorn "namespace" .Values.longhorn.namespace }}{{ end }}
{{- $_ := set $c "longhorn" $longhorn }}
{{- end }}
{{- if .Values.fencing.enabled }}
{{- $profile := dict "name" "rook-ceph" }}
{{- if ne .Values.fencing.namespace "rook-ceph" }}{{ $_ := set $profile "namespace" .Values.fencing.namespace }}{{ end }}
{{- $_ := set $c "fencing" (dict "profiles" (list $profile)) }}
{{- end }}
{{- if .Values.nfs.enabled }}
{{- $_ := set $c "nfs" (dict "drivers" (list (dict "name" "nfs.fairlead.io"))) }}
{{- if .Values.nfs.node.statd }}
{{- $_ := set $c.nfs "statd" "on" }}
{{- end }}
{{- else if .Values.ondat.enabled }}
{{- $_ := set $c "nfs" (dict "mode" "off") }}
{{- end }}
{{- if .Values.ondat.enabled }}
{{- $_ := set $c "ondat" (dict "apiEndpoint" .Values.ondat.apiEndpoint) }}
{{- end }}
{{- toYaml (mergeOverwrite $c (deepCopy .Values.configuration)) }}
{{- end }}

{{- /* The metadata of pods: (list . COMPONENT ANNOTATIONS). A new configuration rolls out. */}}
{{- define "fairlead.podMetadata" -}}
labels:
  app.kubernetes.io/name: fairlead
  app.kubernetes.io/component: {{ index . 1 }}
annotations:
  checksum/configuration: {{ include "fairlead.configuration" (index . 0) | sha256sum }}
  {{- with index . 2 }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "fairlead.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "fairlead.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* Soft constraints are not enough: nodes without a zone are left out of all of them. A roll-out spreads by itself, and
       nodes that no pod may go to do not count: (list COMPONENT). */}}
{{- define "fairlead.spreadHosts" -}}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: DoNotSchedule
  nodeTaintsPolicy: Honor
  matchLabelKeys: [pod-template-hash]
  labelSelector:
    matchLabels:
      {{- toYaml . | nindent 6 }}
{{- end }}

{{- define "fairlead.spreadZones" -}}
- maxSkew: 1
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: ScheduleAnyway
  nodeTaintsPolicy: Honor
  matchLabelKeys: [pod-template-hash]
  labelSelector:
    matchLabels:
      {{- toYaml . | nindent 6 }}
{{- end }}

{{- /* Where pods go: the values of one process. */}}
{{- define "fairlead.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
