{{- /* claimguard's names are the same in every release: `claimguard certificates` and `claimguard doctor` look for them. */ -}}

{{- define "claimguard.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:claimguard
{{- end }}

{{- define "claimguard.labels" -}}
app.kubernetes.io/name: claimguard
{{- end }}

{{- /* Not empty: pods are marked. */ -}}
{{- define "claimguard.marks" -}}
{{- if or .Values.marks.enabled (eq .Values.profile "default-scheduler") }}yes{{ end }}
{{- end }}

{{- /* Not empty: OpenShift chooses the user of a pod, and its operator complains of webhooks for `bindings`. */ -}}
{{- define "claimguard.openShift" -}}
{{- if .Capabilities.APIVersions.Has "security.openshift.io/v1" }}yes{{ end }}
{{- end }}

{{- define "claimguard.runAs" -}}
{{- if not (include "claimguard.openShift" .) -}}
runAsUser: 65532
runAsGroup: 65532
{{- end }}
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

{{- /* A file of the configuration that a value stands for. What it sets is taken out of the user's keys, since a key that two files set is
an error; another value there is one, too: dict "config" $config "name" "profile" "file" "guard.yaml" "sets" (dict SECTION (dict KEY VALUE)). */ -}}
{{- define "claimguard.part" -}}
{{- $sets := .sets }}
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
{{- $files := dict "certFile" "/etc/claimguard-tls/tls.crt" "keyFile" "/etc/claimguard-tls/tls.key" }}
{{- $admission := dict "listen" (dig "admission" "listen" ":8443" $config) "ownUser" (dig "admission" "ownUser" (include "claimguard.user" .) $config) }}
{{- $sets := dict "readWriteOncePod" (dict "claimLock" "Annotation") "admission" $admission }}
{{- if eq .Values.profile "observe" }}
{{- $_ := set $admission "mode" "Observe" }}
{{- end }}
{{- if .Values.certManager.enabled }}
{{- $_ := set $admission "tls" $files }}
{{- $_ := set $sets "server" (dict "tls" (merge (dict "clientCAFile" "/etc/claimguard-tls/ca.crt") $files)) }}
{{- else }}
{{- $_ := set $config "certificates" "Secrets" }}
{{- end }}
{{- include "claimguard.part" (dict "config" $config "name" (printf "the profile %s" .Values.profile) "file" "profile.yaml" "sets" $sets) }}
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
{{- include "claimguard.needs" (dict "root" . "name" "claimguard" "value" true "version" "1.30") }}
{{- include "claimguard.needs" (dict "root" . "name" (ternary "marks.enabled" "the profile default-scheduler" $values.marks.enabled) "value" (include "claimguard.marks" .) "version" "1.36") }}
{{- if and $values.staticPod.enabled (or (has $values.profile (list "scheduler" "observe")) $values.hostNetwork.enabled $values.config) }}
{{- fail "staticPod.enabled renders neither Deployment nor configuration, so the profiles scheduler and observe, hostNetwork and config have no effect: remove them" }}
{{- end }}
{{- if and $values.certManager.enabled (or $values.staticPod.enabled (hasKey $values.config "certificates")) }}
{{- fail "certManager.enabled contradicts staticPod.enabled and config.certificates" }}
{{- end }}
{{- if and $values.scheduler.managedResources (not $values.marks.enabled) }}
{{- fail "scheduler.managedResources needs marks.enabled: claimguard is not called for an unmarked pod" }}
{{- end }}
{{- if and $values.staticPod.enabled (or $values.networkPolicy.schedulers $values.networkPolicy.apiServers) }}
{{- fail "staticPod.enabled renders no NetworkPolicy, which a pod on the host's network escapes: remove networkPolicy.schedulers and networkPolicy.apiServers" }}
{{- end }}
{{- if and (or $values.networkPolicy.schedulers $values.networkPolicy.apiServers) (not $values.networkPolicy.enabled) }}
{{- fail "networkPolicy.schedulers and networkPolicy.apiServers need networkPolicy.enabled: nothing else keeps others from the ports" }}
{{- end }}
{{- end }}
