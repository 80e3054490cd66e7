{{- define "database.name" -}}
{{- printf "%s-%s" .Release.Name (default "db" .Values.nameOverride) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
