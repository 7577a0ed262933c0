{{/* Names are fixed: there is one Diwan in a cluster. */}}
{{- define "diwan.name" -}}diwan-operator{{- end }}

{{- define "diwan.labels" -}}
app.kubernetes.io/name: diwan
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "diwan.selector" -}}
app.kubernetes.io/name: diwan
app.kubernetes.io/component: operator
{{- end }}

{{- define "diwan.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* Not empty where the operators are to run algorithm services from images. */}}
{{- define "diwan.services" -}}
{{- if .Values.rbac.algorithmServices }}true{{ end }}
{{- range concat (dig "runtime" "suggestions" list .Values.katibConfig) (dig "runtime" "earlyStoppings" list .Values.katibConfig) }}
{{- if and .image (not .endpoint) }}true{{ end }}
{{- end }}
{{- end }}

{{/* Not empty where one of them is for early stopping. */}}
{{- define "diwan.stoppingServices" -}}
{{- range dig "runtime" "earlyStoppings" list .Values.katibConfig }}{{ if and .image (not .endpoint) }}true{{ end }}{{ end }}
{{- end }}

{{/* Not empty where one of them has a volume that is made for it. */}}
{{- define "diwan.serviceVolumes" -}}
{{- range dig "runtime" "suggestions" list .Values.katibConfig }}{{ if .persistentVolumeSpec }}true{{ end }}{{ end }}
{{- end }}

{{/* What cannot work is refused here, with what to do. */}}
{{- define "diwan.check" -}}
{{- if and .Values.store.sqlite.enabled (gt (int .Values.replicas) 1) }}
{{- fail "store.sqlite keeps metrics in a file, which operators cannot share: set replicas to 1, or keep metrics in a database" }}
{{- end }}
{{- end }}
