{{- /* claimguard's names are the same in every release: `claimguard certificates` and `claimguard doctor` look for them. */ -}}

{{- define "claimguard.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:claimguard
{{- end }}

{{- define "claimguard.labels" -}}
app.kubernetes.io/name: claimguard
{{- end }}

{{- define "claimguard.image" -}}
{{- $image := .Values.image -}}
{{ $image.repository }}{{ if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* A file of manifests/ with this release's namespace: dict "root" $ "file" "rbac.yaml". */ -}}
{{- define "claimguard.file" -}}
{{- $namespace := .root.Release.Namespace -}}
{{- .root.Files.Get (printf "files/%s" .file)
    | replace "system:serviceaccount:claimguard:claimguard" (include "claimguard.user" .root)
    | replace "namespace: claimguard" (printf "namespace: %s" $namespace)
    | replace "claimguard.claimguard" (printf "claimguard.%s" $namespace) -}}
{{- end }}

{{- /* The same, with the label that all of claimguard's objects have. */ -}}
{{- define "claimguard.objects" -}}
{{- range regexSplit "(?m)^---$" (include "claimguard.file" .) -1 }}
{{- $object := fromYaml . }}
{{- $labels := include "claimguard.labels" $ | fromYaml | merge (dig "metadata" "labels" dict $object) }}
---
{{ toYaml (mergeOverwrite $object (dict "metadata" (dict "labels" $labels))) }}
{{- end }}
{{- end }}

{{- /* A component's file of the configuration. What it sets is taken out of the user's keys, since a key that two files set is an error;
another value there is one, too: dict "config" $config "name" "ha.enabled" "file" "ha.yaml" "sets" "SECTION: {KEY: VALUE}". */ -}}
{{- define "claimguard.part" -}}
{{- $sets := fromYaml .sets }}
{{- range $section, $keys := $sets }}
{{- $theirs := get $.config $section | default dict }}
{{- range $key, $value := $keys }}
{{- if and (hasKey $theirs $key) (ne (get $theirs $key | toJson) (toJson $value)) }}
{{- fail (printf "config.%s.%s contradicts %s, which sets it to %s" $section $key $.name (toJson $value)) }}
{{- end }}
{{- $_ := unset $theirs $key }}
{{- end }}
{{- end }}
{{ .file }}: |
  {{- merge $sets (include "claimguard.head" . | fromYaml) | toYaml | nindent 2 }}
{{- end }}

{{- define "claimguard.head" -}}
apiVersion: claimguard.io/v1alpha1
kind: ClaimguardConfiguration
{{- end }}

{{- /* The files of the ConfigMap: as in kustomize, a component adds its own. */ -}}
{{- define "claimguard.config" -}}
{{- $config := deepCopy .Values.config }}
{{- range list "readWriteOnce" "csiVolumes" "volumeAttributesClasses" }}
{{- if eq (dig . "mode" "" $config | toString) "false" }}{{/* YAML reads Off as false */}}
{{- $_ := set (get $config .) "mode" "Off" }}
{{- end }}
{{- end }}
{{- if .Values.ownCertificates.enabled }}
tls.yaml: |
  {{- merge (dict "certificates" "Secrets") (include "claimguard.head" . | fromYaml) | toYaml | nindent 2 }}
{{- else if .Values.tls.enabled }}
{{- include "claimguard.part" (dict "config" $config "name" "tls.enabled" "file" "tls.yaml" "sets"
    "server: {tls: {certFile: /etc/claimguard-tls/tls.crt, keyFile: /etc/claimguard-tls/tls.key, clientCAFile: /etc/claimguard-tls/ca.crt}}") }}
{{- end }}
{{- if .Values.ha.enabled }}
{{- include "claimguard.part" (dict "config" $config "name" "ha.enabled" "file" "ha.yaml" "sets" "readWriteOncePod: {claimLock: Annotation}") }}
{{- end }}
{{- if .Values.warnOnly.enabled }}
{{- include "claimguard.part" (dict "config" $config "name" "warnOnly.enabled" "file" "warn-only.yaml" "sets"
    "{readWriteOnce: {mode: Warn}, csiVolumes: {mode: Warn}, volumeAttributesClasses: {mode: Warn}}") }}
{{- end }}
{{- if .Values.admission.enabled }}
{{- $ours := dict "listen" (dig "admission" "listen" ":8443" $config) "ownUser" (dig "admission" "ownUser" (include "claimguard.user" .) $config)
    "tls" (dict "certFile" "/etc/claimguard-tls/tls.crt" "keyFile" "/etc/claimguard-tls/tls.key") }}
{{- if .Values.ownCertificates.enabled }}
{{- $_ := unset $ours "tls" }}
{{- end }}
{{- include "claimguard.part" (dict "config" $config "name" "admission.enabled" "file" "admission.yaml" "sets" (dict "admission" $ours | toYaml)) }}
{{- end }}
claimguard.yaml: |
  {{- merge $config (include "claimguard.head" . | fromYaml) (dict "server" (dict "listen" ":8888" "metricsListen" ":8889")) | toYaml | nindent 2 }}
{{- end }}

{{- define "claimguard.needs" -}}
{{- if and .value (not (semverCompare (printf ">=%s-0" .version) .root.Capabilities.KubeVersion.Version)) }}
{{- fail (printf "%s needs Kubernetes %s or later, and this cluster has %s (for helm template: --kube-version)" .name .version
    .root.Capabilities.KubeVersion.Version) }}
{{- end }}
{{- end }}

{{- /* What the schema cannot say. */ -}}
{{- define "claimguard.check" -}}
{{- $values := .Values }}
{{- include "claimguard.needs" (dict "root" . "name" "ha.enabled" "value" $values.ha.enabled "version" "1.30") }}
{{- include "claimguard.needs" (dict "root" . "name" "admission.enabled" "value" $values.admission.enabled "version" "1.30") }}
{{- include "claimguard.needs" (dict "root" . "name" "ownLimits.enabled" "value" $values.ownLimits.enabled "version" "1.30") }}
{{- include "claimguard.needs" (dict "root" . "name" "marks.enabled" "value" $values.marks.enabled "version" "1.36") }}
{{- if and $values.staticPod.enabled (or $values.ha.enabled $values.warnOnly.enabled $values.scheduler.enabled $values.config) }}
{{- fail "staticPod.enabled renders neither Deployment nor configuration, so ha, warnOnly, scheduler and config have no effect: remove them" }}
{{- end }}
{{- if and $values.ownCertificates.enabled (not $values.admission.enabled) }}
{{- fail "ownCertificates.enabled needs admission.enabled" }}
{{- end }}
{{- if and $values.ownCertificates.enabled (or $values.certManager.enabled $values.staticPod.enabled (not $values.tls.enabled)) }}
{{- fail "ownCertificates.enabled contradicts certManager.enabled, staticPod.enabled, and tls.enabled: false" }}
{{- end }}
{{- if and $values.marks.enabled (not $values.admission.enabled) }}
{{- fail "marks.enabled needs admission.enabled: a webhook may add a claim to a pod that has no mark, and only the review of its Binding keeps it from the claim of another pod" }}
{{- end }}
{{- if and $values.scheduler.managedResources (not $values.marks.enabled) }}
{{- fail "scheduler.managedResources needs marks.enabled: claimguard is not called for an unmarked pod" }}
{{- end }}
{{- if and (hasKey $values.config "admission") (not $values.admission.enabled) }}
{{- fail "config.admission needs admission.enabled, which opens port 8443 and makes the webhooks" }}
{{- end }}
{{- if and (eq $values.admission.failurePolicy "Fail") (not $values.admission.enabled) }}
{{- fail "admission.failurePolicy: Fail needs admission.enabled" }}
{{- end }}
{{- if and $values.staticPod.enabled (or $values.networkPolicy.schedulers $values.networkPolicy.apiServers) }}
{{- fail "staticPod.enabled renders no NetworkPolicy, which a pod on the host's network escapes: remove networkPolicy.schedulers and networkPolicy.apiServers" }}
{{- end }}
{{- if and (or $values.networkPolicy.schedulers $values.networkPolicy.apiServers) (not $values.networkPolicy.enabled) }}
{{- fail "networkPolicy.schedulers and networkPolicy.apiServers need networkPolicy.enabled: nothing else keeps others from the ports" }}
{{- end }}
{{- end }}
