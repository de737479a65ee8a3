{{- define "common.name" -}}web{{- end -}}
