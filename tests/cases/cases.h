/*
 * The rows of the ReadWriteOncePod decision table and of the holder rules above it, each a folder
 * here: cluster.yaml (the snapshot), pod.json (the pod being scheduled), want.json (the dry run's
 * answer). Every row is put through the policy, the dry run, and HTTP.
 */
#ifndef TESTS_CASES_H
#define TESTS_CASES_H

/* clang-format off */
#define ALL_CASES(CASE) \
    CASE(has_no_claim_backed_volume) \
    CASE(names_a_claim_that_does_not_exist) \
    CASE(names_a_claim_that_is_being_deleted) \
    CASE(names_an_ephemeral_claim_that_another_pod_owns) \
    CASE(names_an_ephemeral_claim_that_it_owns) \
    CASE(names_only_claims_that_are_not_exclusive) \
    CASE(the_pod_is_being_deleted) \
    CASE(every_exclusive_claim_is_free) \
    CASE(a_holder_has_equal_priority) \
    CASE(a_holder_has_higher_priority) \
    CASE(preemption_policy_is_never) \
    CASE(one_of_two_holders_has_higher_priority) \
    CASE(every_holder_is_already_terminating) \
    CASE(every_holder_has_lower_priority) \
    CASE(holders_not_yet_terminating_are_the_victims) \
    CASE(a_missing_claim_comes_before_a_held_one) \
    CASE(holder_by_an_ephemeral_volume) \
    CASE(holder_is_not_assigned_to_a_node) \
    CASE(holder_has_succeeded) \
    CASE(holder_has_failed) \
    CASE(holder_is_terminating_with_higher_priority) \
    CASE(holder_is_nominated_with_equal_priority) \
    CASE(holder_is_nominated_with_higher_priority) \
    CASE(holder_is_nominated_with_lower_priority) \
    CASE(a_nominated_pod_waits_for_an_older_nominated_pod) \
    CASE(a_nominated_pod_passes_a_younger_nominated_pod) \
    CASE(of_two_nominated_pods_of_one_age_the_lower_uid_passes) \
    CASE(of_two_nominated_pods_of_one_age_the_higher_uid_waits) \
    CASE(a_nominated_pod_waits_for_a_younger_one_of_higher_priority) \
    CASE(a_pod_without_a_nomination_waits_for_a_younger_nominated_pod) \
    CASE(holder_is_nominated_to_a_node_that_does_not_exist) \
    CASE(the_pod_is_nominated_to_a_node_that_does_not_exist) \
    CASE(holder_is_nominated_and_being_deleted) \
    CASE(holder_is_the_pod_itself) \
    CASE(holder_is_the_pod_itself_and_nobody_has_a_uid) \
    CASE(holder_has_the_same_name_and_another_uid) \
    CASE(holder_is_in_another_namespace) \
    CASE(two_pods_hold_one_claim) \
    CASE(one_pod_holds_two_claims) \
    CASE(one_claim_in_two_volumes)
/* clang-format on */

#endif
