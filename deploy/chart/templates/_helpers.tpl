{{- define "wharfinger.name" -}}
{{- if contains "wharfinger" .Release.Name }}{{ .Release.Name | trunc 53 | trimSuffix "-" }}{{ else }}{{ printf "%s-wharfinger" .Release.Name | trunc 53 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "wharfinger.selector" -}}
app.kubernetes.io/name: wharfinger
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "wharfinger.labels" -}}
{{ include "wharfinger.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}

{{- define "wharfinger.account" -}}
{{- .Values.serviceAccount.name | default (ternary (include "wharfinger.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "wharfinger.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}
