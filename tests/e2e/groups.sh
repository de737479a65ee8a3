# shellcheck shell=bash
# Which scenarios run one after another on one control plane. A group starts its own, so what it leaves behind disturbs no
# other, and groups run side by side: tests/plan has a step for each. To be sourced.

# What needs a newer Kubernetes than the oldest that is tested: MutatingAdmissionPolicy v1 (the component marks), gangs, a scheduler that shows its
# configuration as a file.
declare -A since_minor=(
    [unmarked_pods_are_stopped_by_admission_and_marked_ones_by_the_extender]=36
    [claims_that_a_webhook_adds_behind_the_marks_have_one_pod_each_with_admission]=36
    [all_components_run_together_and_so_does_a_static_pod]=36
    [the_manifests_render_and_the_api_server_takes_them]=36
    [doctor_reads_what_a_running_kube_scheduler_has]=36
    [marked_pods_are_judged_and_the_others_cost_no_call]=36
    [limit_ranges_and_quotas_do_not_trip_over_the_mark]=36
    [doctor_finds_what_is_wrong_in_a_cluster]=36
    [helm_takes_over_from_kustomize_installs_upgrades_and_leaves_nothing]=36
    [what_one_release_has_written_the_other_reads]=36
    [nobody_is_evicted_for_a_gang_that_does_not_fit]=36
)

# The longest first.
groups=(admission faults soak late deferral admission_pod verify manifests chart races advice volumes basics commands events upgrade api_server)

# Each once where kube-scheduler's plugin comes first, and once without it.
group_basics() {
    local name
    for name in a_pod_on_a_free_claim_is_scheduled a_second_pod_waits_and_its_event_names_claim_and_holder \
        deleting_the_holder_lets_the_second_pod_run_within_seconds \
        kep_2485_a_volume_succeeds_when_consumed_by_a_single_pod_on_a_node \
        kep_2485_a_volume_fails_when_consumed_by_a_second_pod_on_the_same_node \
        kep_2485_a_volume_fails_when_consumed_by_a_second_pod_on_a_different_node \
        kep_2485_a_low_priority_pod_is_unschedulable_and_unresolvable \
        kep_2485_a_high_priority_pod_preempts_the_pod_that_uses_the_volume \
        a_pod_that_never_preempts_evicts_nobody \
        nobody_is_evicted_for_a_pod_that_could_not_get_all_its_claims \
        a_pod_whose_claim_is_missing_waits_and_runs_when_it_is_created; do
        scenario "$name, with VolumeRestrictions" with_scheduler default-scheduler "$name"
        scenario "$name, without VolumeRestrictions" with_scheduler claimguard-scheduler "$name"
    done
    scenarios claimguard_was_refused_nothing
}

group_events() {
    scenarios many_callers_that_ask_the_same_cost_few_requests \
        an_event_names_the_holder_to_a_pod_that_kube_scheduler_rejects_first \
        an_event_names_each_new_holder_to_a_pod_that_waits \
        a_victim_is_evicted_once_and_its_claim_is_kept_for_the_preemptor \
        a_budget_forbids_a_preemption_until_it_is_gone \
        two_preemptors_for_one_claim_cost_one_eviction_and_the_higher_one_gets_it \
        claims_of_one_name_in_two_namespaces_are_two_claims \
        an_ephemeral_volume_is_a_claim_that_belongs_to_its_pod \
        a_pod_that_sets_its_node_beside_a_holder_shows_up_as_a_violation \
        a_captured_snapshot_gives_the_verdicts_of_the_live_server \
        claimguard_was_refused_nothing
}

group_commands() {
    scenarios who_names_the_holder_of_a_live_claim_and_what_it_says_frees_it who_watch_shows_each_change_of_a_live_claim \
        audit_finds_the_deployment_whose_rollout_is_stuck \
        why_frees_a_volume_that_another_node_has \
        why_says_what_keeps_a_holder_that_is_being_deleted \
        why_names_a_driver_that_a_node_lacks \
        every_kind_of_kubeconfig_connects_and_a_wrong_one_says_why \
        claimguard_was_refused_nothing
}

# What is advised is done, and undone. Without the extender's plugin, so that the scheduler's message names the holder.
group_advice() {
    scenarios the_controllers_that_end_pods_run \
        advice_delete_pod \
        advice_scale_of_each_kind \
        advice_scale_to_one \
        advice_scale_under_an_autoscaler \
        advice_keep_claims \
        advice_suspend_job \
        advice_suspend_cron_job \
        advice_end_old \
        advice_recreate \
        advice_out_of_service \
        advice_in_service \
        advice_delete_pod_of_a_node_that_is_not_ready \
        advice_forget_node \
        advice_keep_volume \
        advice_delete_ended_pod \
        advice_reserve_volume \
        advice_of_a_lost_claim_brings_its_volume_back \
        advice_delete_lost_claim \
        advice_apply \
        advice_apply_rights
}

group_manifests() {
    scenarios the_manifests_render_and_the_api_server_takes_them \
        what_doctor_says_of_a_scheduler_s_file_is_what_kube_scheduler_does \
        doctor_reads_what_a_running_kube_scheduler_has \
        marked_pods_are_judged_and_the_others_cost_no_call \
        limit_ranges_and_quotas_do_not_trip_over_the_mark \
        a_rolling_update_of_two_replicas_leaves_a_claim_one_pod \
        over_tls_a_scheduler_with_a_certificate_is_answered_and_no_other \
        certificates_are_secrets_that_are_renewed_while_a_scheduler_uses_them \
        a_user_of_one_namespace_stops_no_other \
        claimguard_was_refused_nothing \
        doctor_finds_what_is_wrong_in_a_cluster # some of it with claimguard's own rights, which do not suffice
}

group_races() {
    scenarios two_schedulers_race_and_no_claim_has_two_pods \
        two_schedulers_race_while_claimguard_is_killed_and_restarted \
        two_schedulers_with_a_replica_each_race_and_the_annotation_decides \
        two_replicas_are_killed_and_restarted_while_their_schedulers_race \
        replicas_with_different_entries_race_and_no_claim_is_shared \
        another_claim_lock_waits_for_the_bindings_of_the_former_one \
        one_claimguard_again \
        claimguard_was_refused_nothing
}

group_deferral() {
    scenarios story_1_a_pod_is_deferred_whose_requirements_csi_plugin_and_runtime_meet \
        story_2_the_runtime_cannot_surface_a_sub_path_and_the_node_mounts_it \
        story_3_the_csi_plugin_cannot_defer_and_the_node_mounts_it \
        story_4_after_the_plugin_s_upgrade_pods_are_deferred \
        story_5_after_a_downgrade_a_running_pod_is_deferred_and_listed \
        story_6_a_pod_scheduled_right_before_a_downgrade_is_deferred_and_listed \
        ephemeral_and_inline_volumes_are_decided_too \
        a_claim_that_is_bound_late_is_decided_when_it_is_bound \
        a_user_s_own_annotation_is_kept_and_an_opt_out_heeded \
        a_field_that_the_api_server_does_not_know_binds_nobody \
        a_failure_between_the_patch_and_the_binding_leaves_one_decision \
        every_pod_that_appears_bound_carries_its_decision \
        exclusive_two_pods_on_a_read_write_once_claim_race_and_never_run_together \
        exclusive_a_deferred_holder_is_preempted_though_the_scheduler_knows_nothing \
        a_pod_that_sets_its_node_beside_a_deferred_holder_shows_up_as_a_violation \
        refuse_defers_no_claim_that_pods_may_share \
        allow_lets_deferred_pods_share \
        claimguard_was_refused_nothing
}

group_volumes() {
    scenarios a_rolling_deployment_lands_on_the_holder_s_node_though_sampling_hides_it \
        a_full_holder_s_node_leaves_the_pod_pending_until_there_is_room \
        of_pairs_on_read_write_once_claims_none_is_on_two_nodes \
        with_warn_a_pod_on_another_node_is_bound_and_an_event_says_so \
        a_driver_that_registers_later_wakes_the_pod_and_one_that_leaves_and_comes_back \
        a_claim_s_driver_is_looked_for_on_each_node \
        a_driver_without_inline_volumes_is_refused_and_a_csi_driver_that_appears_wakes_the_pod \
        a_missing_class_that_appears_wakes_the_pod_within_a_second \
        claimguard_was_refused_nothing
}

group_admission() {
    scenarios two_schedulers_without_extender_race_and_admission_leaves_each_claim_one_pod \
        a_scheduler_with_the_extender_and_one_without_race_and_no_claim_has_two_pods \
        two_claimguards_are_killed_in_turn_and_admission_leaves_each_claim_one_pod \
        a_client_that_posts_to_the_old_path_gets_no_claim_that_another_pod_has \
        a_binding_without_uid_is_denied_for_each_pod_and_one_with_uid_binds_no_later_pod \
        a_denied_pod_s_event_names_the_holder_and_it_is_bound_soon_after_the_holder_goes \
        a_pod_of_a_scheduler_without_extender_carries_its_decision_when_it_is_bound \
        with_ignore_a_binding_passes_without_claimguard_and_with_fail_it_waits \
        with_fail_a_claim_in_kube_system_has_one_pod_while_claimguard_answers \
        a_made_up_review_gets_an_answer_and_creates_nothing_and_without_a_certificate_it_may_get_none \
        a_wrong_ca_bundle_stops_reviews_until_the_command_is_called_again \
        claimguard_makes_deleted_certificates_again_and_misses_no_review \
        admission_runs_with_faults_leave_each_claim_one_pod \
        claimguard_was_refused_nothing
}

group_admission_pod() {
    scenarios pods_that_name_their_nodes_race_and_admission_leaves_each_claim_one_pod \
        a_pod_that_names_its_node_is_refused_a_held_claim_and_gets_it_when_the_holder_goes \
        what_can_never_run_is_refused_and_what_may_run_later_is_warned_of \
        with_ignore_a_pod_is_created_without_claimguard_and_with_fail_only_one_without_a_node \
        with_admission_schedulers_with_the_extender_race_and_no_claim_has_two_pods \
        with_admission_a_rolling_update_of_two_replicas_leaves_a_claim_one_pod \
        unmarked_pods_are_stopped_by_admission_and_marked_ones_by_the_extender \
        claims_that_a_webhook_adds_behind_the_marks_have_one_pod_each_with_admission \
        an_ignorable_extender_is_passed_by_without_claimguard_unless_admission_fails \
        all_components_run_together_and_so_does_a_static_pod \
        what_the_api_server_does_late_gives_a_claim_two_pods_with_local_and_one_with_annotation \
        without_admission_again \
        claimguard_was_refused_nothing
}

group_verify() {
    scenarios every_row_holds_where_claimguard_reviews_and_schedulers_call_it \
        without_webhooks_the_rows_that_do_not_hold_are_named \
        verify_names_the_line_of_each_broken_webhook \
        verify_prints_what_doctor_finds \
        verify_that_is_interrupted_leaves_nothing_and_the_next_one_removes_what_a_killed_one_left
}

group_chart() {
    scenarios three_hundred_pods_on_three_hundred_claims_among_5000_nodes \
        claimguard_was_refused_nothing \
        its_own_policy_lets_claimguard_write_what_it_writes_and_no_more \
        every_right_of_the_cluster_role_is_needed \
        the_api_server_takes_what_the_prometheus_operator_reads \
        the_chart_renders_what_kustomize_does \
        helm_takes_over_from_kustomize_installs_upgrades_and_leaves_nothing \
        the_chart_s_second_scheduler_binds_pods_with_the_rights_that_it_has \
        the_default_install_leaves_each_claim_one_pod_of_two_that_a_client_binds \
        with_observe_a_binding_that_would_be_denied_is_applied_and_everybody_is_told \
        with_openshift_no_pod_names_a_user_and_the_old_path_of_bindings_is_closed \
        a_cluster_whose_nodes_and_claimguards_are_all_gone_starts_again_by_itself
}

group_api_server() {
    scenarios the_api_server_is_killed_and_restarted \
        an_older_api_server_is_followed_in_pages_and_without_what_it_lacks \
        a_compaction_makes_the_watches_expire_and_nothing_is_lost \
        a_rotated_token_is_used_and_a_revoked_one_recovered_from \
        nobody_is_evicted_for_a_gang_that_does_not_fit \
        the_tutorial_prints_what_its_page_says
}

group_late() {
    scenarios no_rejection_is_stale \
        a_rejection_that_could_not_be_confirmed_is_made_up_for \
        silence_is_found_within_a_minute
}

group_upgrade() {
    [ -n "$previous" ] || return 0
    scenarios the_previous_release_s_configuration_means_the_same_and_a_key_that_it_lacks_is_an_error_there \
        what_one_release_has_written_the_other_reads a_snapshot_of_the_previous_release_is_read \
        replicas_of_both_releases_race_and_leave_each_claim_one_pod a_rolling_upgrade_and_a_rolling_rollback_fail_no_call
}

group_soak() { scenario "everything_at_once_for_${soak}_seconds" everything_at_once; }

group_faults() {
    local runs=${CLAIMGUARD_E2E_FAULT_RUNS:-120}
    scenario "$runs runs with faults end with the cache that a fresh list gives" faults_runs "$runs" "$seed"
}
