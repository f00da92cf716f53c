{{- define "kschedfw.name" -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kschedfw.account" -}}
{{ .Values.serviceAccount.name | default (include "kschedfw.name" .) }}
{{- end }}

{{- define "kschedfw.selector" -}}
app.kubernetes.io/name: kschedfw
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kschedfw.metadata" -}}
{{ include "kschedfw.clusterMetadata" . }}
namespace: {{ .Release.Namespace }}
{{- end }}

{{- define "kschedfw.clusterMetadata" -}}
name: {{ include "kschedfw.name" . }}
labels:
  {{- include "kschedfw.selector" . | nindent 2 }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
