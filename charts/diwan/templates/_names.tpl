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

{{/* What cannot work is refused here, with what to do. */}}
{{- define "diwan.check" -}}
{{- if and .Values.store.sqlite.enabled (gt (int .Values.replicas) 1) }}
{{- fail "store.sqlite keeps metrics in a file, which operators cannot share: set replicas to 1, or keep metrics in a database" }}
{{- end }}
{{- end }}
