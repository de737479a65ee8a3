# shellcheck shell=bash
# docs/tutorial.md on a real API server: each line is run, and what the page shows of its output is there. To be sourced.

# The page's blocks of code, a line each: `run LINE`, or `show LINE`, if its output follows, as `says TEXT`; a block whose first line begins with
# `$ ` has both. `not LINE`: marked as not tested.
tutorial_lines() {
    awk '
        !/^    / { in_block = 0; next }
        { line = substr($0, 5); if (!in_block) { in_block = 1; shown = line ~ /^\$ / } }
        sub(/ *# not tested$/, "", line) { print "not\t" line; next }
        !shown { print "run\t" line; next }
        sub(/^\$ /, "", line) { print "show\t" line; next }
        { print "says\t" line }' "$root/docs/tutorial.md"
}

# The page's first cluster has one node; times differ.
tutorial_normal() { sed -E "s/node-[0-9]+/try-control-plane/g; s/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z/TIME/g; s/ +$//"; }

# tutorial_compare LINE: $plane/said is what the page says in $plane/expected, where `...` stands for anything: the rest of a line, or if it is
# alone, any lines.
tutorial_compare() {
    [ -n "$1" ] || return 0
    python3 - "$plane/expected" "$plane/said" <<'END' || fail "$1 does not say what the page shows, but: $(cat "$plane/said")"
import re, sys
expected, said = (open(path, encoding="utf-8").read() for path in sys.argv[1:])
lines = ["(.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + "\n" for line in expected.splitlines()]
sys.exit(not re.fullmatch("".join(lines), said))
END
}

# A kubelet is played: what has a node runs, what is deleted is gone.
tutorial_kubelet() {
    local path is_deleted
    while sleep 0.5; do
        api /api/v1/pods | jq -r '.items[] | select(.spec.nodeName and (.status.phase == "Pending" or .metadata.deletionTimestamp)) |
            "/api/v1/namespaces/\(.metadata.namespace)/pods/\(.metadata.name) \(.metadata.deletionTimestamp != null)"' | while read -r path is_deleted; do
            if [ "$is_deleted" = true ]; then
                api "$path?gracePeriodSeconds=0" -X DELETE
            else
                api "$path/status" -X PATCH -H 'Content-Type: application/strategic-merge-patch+json' \
                    -d '{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}'
            fi
        done >/dev/null
    done
}

# What the pods of the cluster would do after this line.
tutorial_plays() {
    case $1 in
    'kubectl apply -k manifests') deployment_is_played ;;
    *profiles/scheduler/scheduler.yaml)
        secrets_to_files
        chart_scheduler_start "s#urlPrefix: .*#urlPrefix: $(url_of claimguard address | sed s/http:/https:/)#; s#/etc/kubernetes/claimguard#$plane/secrets#
            s/^    tlsConfig:/&\n        serverName: claimguard.claimguard.svc/"
        ;;
    esac
}

tutorial_paste() { # LINE
    KUBECONFIG=$plane/tutorial/kubeconfig PATH=$plane/tutorial/bin:$tools:$PATH timeout 200 bash -c "cd '$plane/tutorial' && $1" >"$plane/pasted" 2>&1
}

tutorial_end() {
    plane_kill "$plane" tutorial-kubelet
    plane_kill "$plane" chart-scheduler
}

the_tutorial_prints_what_its_page_says() {
    local kind line shown=''
    nothing_is_installed
    mkdir -p "$plane/tutorial/docs" "$plane/tutorial/bin"
    cp -r "$root/manifests" "$plane/tutorial"
    cp -r "$root/docs/example" "$plane/tutorial/docs"
    ln -s "$claimguard" "$plane/tutorial/bin/claimguard"
    cp "$plane/admin.kubeconfig" "$plane/tutorial/kubeconfig"
    plain_schedulers default-scheduler
    trap tutorial_end EXIT
    plane_run "$plane" tutorial-kubelet tutorial_kubelet
    tutorial_lines >"$plane/tutorial/lines"
    while IFS=$'\t' read -r kind line <&3; do
        if [ "$kind" != says ]; then
            tutorial_compare "$shown"
            shown=''
        fi
        case $kind in
        not) echo "not run: $line" ;;
        run)
            tutorial_paste "$line" || fail "$line: $(cat "$plane/pasted")"
            tutorial_plays "$line"
            ;;
        show)
            tutorial_paste "$line" || true
            tutorial_normal <"$plane/pasted" >"$plane/said"
            : >"$plane/expected"
            shown=$line
            ;;
        says) tutorial_normal <<<"$line" >>"$plane/expected" ;;
        esac
    done 3<"$plane/tutorial/lines"
    tutorial_compare "$shown"
}
