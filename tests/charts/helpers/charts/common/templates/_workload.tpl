{{- define "common.labels" -}}
{{- $labels := dict "app.kubernetes.io/instance" .Release.Name "app.kubernetes.io/managed-by" .Release.Service -}}
{{- range $key, $value := .Values.labels }}{{ $_ := set $labels $key (tpl $value $) }}{{ end -}}
{{- toYaml $labels -}}
{{- end -}}

{{- define "common.workload" -}}
{{- $top := index . 0 -}}{{- $name := index . 1 -}}{{- $spec := index . 2 -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $top.Release.Name }}-{{ $name }}
  labels: {{- include "common.labels" $top | nindent 4 }}
spec:
  selector: {matchLabels: {component: {{ $name }}}}
  template:
    metadata:
      labels: {component: {{ $name }}}
    spec:
      containers:
        - name: {{ $name }}
          image: {{ tpl $spec.image $top | quote }}
          ports: [{containerPort: {{ $spec.port }}}]
          {{- with $spec.env }}
          env:
            {{- range $key, $value := . }}
            - {name: {{ $key }}, value: {{ tpl $value $top | quote }}}
            {{- end }}
          {{- end }}
{{- end -}}
