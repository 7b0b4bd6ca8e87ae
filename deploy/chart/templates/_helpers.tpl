{{/*
What the objects of the whole cluster are called. One installation has one namespace, so its name tells one from another; in
the namespace per-node they are called as in deploy/base.
*/}}
{{- define "per-node.cluster-name" -}}
{{- if hasPrefix "per-node" .Release.Namespace -}}
{{ .Release.Namespace }}
{{- else -}}
per-node-{{ .Release.Namespace }}
{{- end -}}
{{- end -}}

{{/*
What the plugin's pods are found by, also by kubectl per-node.
*/}}
{{- define "per-node.selector" -}}
app.kubernetes.io/name: per-node
{{- end -}}

{{/*
Labels of every object. None of them is on the plugin's pods: a new version of the chart alone restarts nothing.
*/}}
{{- define "per-node.labels" -}}
{{ include "per-node.selector" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/*
Labels of an object (`chart`) with those that its value gives (`more`), which count where both have one: others select by them.
*/}}
{{- define "per-node.labels-with" -}}
{{- merge (deepCopy .more) (include "per-node.labels" .chart | fromYaml) | toYaml -}}
{{- end -}}

{{/*
The image, by its digest where one is given.
*/}}
{{- define "per-node.image" -}}
{{- $tagged := printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- if .Values.image.digest -}}
{{ $tagged }}@{{ .Values.image.digest }}
{{- else -}}
{{ $tagged }}
{{- end -}}
{{- end -}}

{{/*
The command line. The first flags are always there, so that a person who looks at a pod sees them; the others where they
differ from what the driver does by itself.
*/}}
{{- define "per-node.args" -}}
{{- $serve := .Values.serve -}}
- serve
- {{ printf "--kubelet-dir=%s" $serve.kubeletDir | quote }}
- {{ printf "--store=%s" $serve.store | quote }}
- {{ printf "--http=%s" $serve.http | quote }}
{{- if $serve.httpCopies }}
- --http-copies
{{- end }}
- {{ printf "--log-format=%s" $serve.logFormat | quote }}
{{- if ne $serve.driverName "per-node.liken.sh" }}
- {{ printf "--driver-name=%s" $serve.driverName | quote }}
{{- end }}
{{- range $flag, $value := dict
  "node-id" $serve.nodeId
  "pod-uid" $serve.podUid
  "endpoint" $serve.endpoint
  "kubelet-endpoint" $serve.kubeletEndpoint
  "copy-mode" $serve.copyMode
  "sweep-every" $serve.sweepEvery
  "trash-for" $serve.trashFor
  "event-window" $serve.eventWindow
  "kubeconfig" $serve.kubeconfig
  "seccomp" $serve.seccomp }}
{{- if $value }}
- {{ printf "--%s=%s" $flag $value | quote }}
{{- end }}
{{- end }}
{{- if not (kindIs "invalid" $serve.registrationDir) }}
- {{ printf "--registration-dir=%s" $serve.registrationDir | quote }}
{{- end }}
{{- if not (kindIs "invalid" $serve.sweepLimit) }}
- --sweep-limit={{ int64 $serve.sweepLimit }}
{{- end }}
{{- range $flag, $on := dict
  "store-mount-required" $serve.storeMountRequired
  "volume-health" $serve.volumeHealth
  "standalone" $serve.standalone }}
{{- if $on }}
- --{{ $flag }}
{{- end }}
{{- end }}
{{- end -}}
