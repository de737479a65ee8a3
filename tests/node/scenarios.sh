# shellcheck shell=bash
# The scenarios, one after another on one cluster. To be sourced.

all_scenarios() {
    scenarios by_kubectl_apply_its_own_image_is_ready_and_doctor_finds_nothing \
        pods_take_turns_across_nodes_and_read_what_the_last_one_wrote \
        a_pod_that_has_ended_gives_its_claim_up_and_keeps_it_from_being_deleted \
        a_kubelet_that_dies_with_the_holder_keeps_the_claim_until_it_is_back \
        a_force_deleted_pod_of_a_live_kubelet_never_writes_beside_the_next_one \
        a_force_deleted_pod_without_its_kubelet_runs_on_and_its_attachment_keeps_the_next_one_out \
        a_force_deleted_pod_without_its_kubelet_and_without_attachment_writes_beside_the_next_one \
        with_the_taint_that_who_names_the_pods_of_a_lost_node_end_and_the_next_one_reads_the_file \
        a_rolling_deployment_ends_in_multi_attach_and_with_enforce_it_ends \
        a_driver_that_comes_lets_the_pod_run_and_one_that_goes_keeps_the_next_out \
        an_inline_volume_is_mounted_and_gone_with_its_pod \
        a_volume_attributes_class_is_applied_and_a_missing_one_is_named \
        a_class_that_is_changed_under_a_running_pod_is_applied_and_one_that_is_refused_is_named \
        the_driver_reads_the_annotation_and_leaves_the_mount \
        by_helm_install_its_own_image_is_ready_and_doctor_finds_nothing \
        a_replica_on_each_node_answers_and_one_may_die \
        a_pod_that_names_its_node_is_refused_a_held_claim \
        with_marks_a_pod_without_claims_costs_no_call \
        as_a_static_pod_it_is_there_without_a_scheduler
}
