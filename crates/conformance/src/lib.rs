//! The specification of a store, as tests that every backend passes.
//!
//! # Running the suite against a backend
//!
//! Add `orchestrix-conformance` and `tokio` to the backend's dev-dependencies. In a test file, write a function that
//! returns a fresh, empty store, and call the macro with its name:
//!
//! ```text
//! // crates/my-store/tests/conformance.rs
//! use orchestrix_conformance::Harness;
//!
//! async fn harness() -> Harness {
//!     let clock = Arc::new(ManualClock::new(Timestamp::now()));
//!     let store = Arc::new(MyStore::open(clock.clone()).await);
//!     Harness { store, clock: Box::new(clock), guard: Box::new(()) }
//! }
//!
//! orchestrix_conformance::conformance_suite!(harness);
//! ```
//!
//! The macro expands to one test per promise, in one module per file of this crate. Each test gets a store of its own
//! and uses it through the [`Store`] traits only.
//!
//! All time is virtual: the [`Harness`] comes with the clock of its store. No test sleeps or measures real time. A
//! backend whose clock is a database server implements [`TestClock`] for it.
//!
//! # Adding a test
//!
//! Write `pub(super) async fn` in the file of its topic and add its name to the list below. A test that is written
//! but not listed is dead code, which the build refuses; one that is listed but not written does not compile.
//! The name states the promise.

#![deny(dead_code)]

mod api_keys;
mod audit;
mod backfill;
mod bulk_operations;
mod cancel;
mod changes;
mod claim;
mod concurrency;
mod coordination;
mod dedicated_handle;
mod dependencies;
mod dependency_failure;
mod enqueue;
mod enqueue_many;
mod finish;
mod firing;
mod fixture;
mod held_jobs;
mod idempotency;
mod inspect;
mod invariants;
mod lanes;
mod leases;
mod logs;
mod metrics;
mod overlap;
mod progress;
mod prune;
mod queues_and_priority;
mod repeated_outcomes;
mod retry;
mod schedules;
mod sweeps;
mod tenants;
mod timeouts;
mod turns;
mod wakeup;
mod width;
mod workers;

use std::{any::Any, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use orchestrix_core::Timestamp;

use orchestrix_store::{Clock, ManualClock, Store};

/// A fresh store and its clock.
pub struct Harness {
    /// An empty store that no other test uses.
    pub store: Arc<dyn Store>,
    /// The clock of the store.
    pub clock: Box<dyn TestClock>,
    /// Dropped after the test, such as a handle that deletes the test's database.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness").finish_non_exhaustive()
    }
}

/// A clock that only moves when a test advances it.
#[async_trait]
pub trait TestClock: Send + Sync {
    /// Moves the clock forward. On return, the store uses the new time.
    async fn advance(&self, by: Duration);

    /// The current time of the store.
    async fn now(&self) -> Timestamp;
}

#[async_trait]
impl TestClock for Arc<ManualClock> {
    async fn advance(&self, by: Duration) {
        ManualClock::advance(self, by);
    }

    async fn now(&self) -> Timestamp {
        Clock::now(&**self)
    }
}

// Generates, from one list, public functions for other crates and the macro that turns each into a test there.
macro_rules! suite {
    ($($module:ident { $($test:ident,)+ })+) => {
        #[doc(hidden)]
        pub mod tests {
            $(pub mod $module {
                $(pub async fn $test(harness: &super::super::Harness) {
                    super::super::$module::$test(harness).await;
                })+
            })+
        }

        /// Expands to the conformance suite: one test per promise, each on a store of its own.
        ///
        /// Takes the path of an `async fn() -> Harness`. The calling crate needs `tokio` as a dependency.
        #[macro_export]
        macro_rules! conformance_suite {
            ($harness:path) => {
                $(mod $module {
                    #[allow(unused_imports)]
                    use super::*;

                    $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $test() {
                        let harness = $harness().await;
                        $crate::tests::$module::$test(&harness).await;
                    })+
                })+
            };
        }
    };
}

suite! {
    enqueue {
        a_job_with_defaults_is_pending_at_once,
        every_field_of_a_request_is_stored,
        a_payload_is_kept_byte_for_byte,
        a_delayed_job_is_scheduled_for_its_delay_from_now,
        a_zero_delay_is_no_delay,
        a_job_with_a_future_run_time_is_scheduled_for_it,
        a_job_with_a_past_run_time_is_eligible_now,
        a_held_job_is_created_whatever_else_it_waits_for,
        times_are_truncated_to_microseconds,
        every_bad_field_is_named_and_nothing_is_stored,
        a_single_job_cannot_depend_on_a_reference,
    }
    enqueue_many {
        a_call_without_jobs_returns_nothing,
        results_are_in_the_order_of_the_jobs,
        bad_fields_are_named_by_position_and_refuse_the_whole_call,
        an_unknown_parent_refuses_the_whole_call,
        a_call_may_enqueue_ten_thousand_jobs_and_no_more,
        jobs_of_one_call_can_depend_on_each_other,
        cycles_and_unknown_references_are_refused,
    }
    idempotency {
        a_repeat_returns_the_first_job_and_its_current_state,
        a_different_request_with_a_known_key_is_refused,
        payload_formatting_does_not_matter,
        keys_are_separate_per_tenant_and_type,
        jobs_without_a_key_are_never_duplicates,
        a_repeat_within_one_call_is_the_same_job,
        two_requests_with_one_key_refuse_their_call,
        one_reused_key_refuses_the_whole_call,
        of_several_reused_keys_the_first_of_the_call_is_named,
        a_repeated_call_returns_the_same_jobs,
        a_reference_to_a_duplicate_means_the_existing_job,
        a_key_outlives_its_job_and_keeps_its_final_state,
        a_repeat_is_answered_even_after_its_parent_was_pruned,
    }
    dependencies {
        a_job_with_an_unfinished_parent_is_blocked,
        a_parent_that_has_completed_is_not_waited_for,
        an_unknown_parent_is_refused,
        a_parent_that_was_pruned_is_refused,
        only_the_last_parent_to_complete_unblocks,
        a_parent_named_twice_is_waited_for_once,
        a_parent_that_will_be_retried_is_still_waited_for,
        a_job_becomes_eligible_when_its_last_parent_completes,
        a_job_that_is_unblocked_before_its_time_waits_for_it,
        a_blocked_job_is_not_unblocked_by_its_time,
        a_released_job_still_waits_for_its_parents,
        a_child_receives_the_results_of_its_parents_in_the_order_of_their_ids,
        every_end_of_a_job_unblocks_its_dependents_at_once,
        a_parent_with_many_children_unblocks_each_once,
    }
    dependency_failure {
        a_dead_parent_cancels_its_children_by_default,
        a_cancelled_parent_counts_as_failed,
        a_held_child_is_cancelled_too,
        one_failed_parent_of_many_is_enough_to_cancel,
        a_cancel_propagates_down_a_long_chain,
        a_cancel_ends_at_jobs_that_run_or_are_held,
        a_cancel_reaches_a_job_by_every_path_and_cancels_it_once,
        sweeps_that_end_jobs_settle_their_children,
        a_child_with_policy_run_runs_after_a_failed_parent,
        a_child_with_policy_hold_waits_for_a_release_and_then_for_its_other_parents,
        a_held_child_stays_held_when_its_last_parent_completes,
        a_parent_that_failed_before_the_enqueue_takes_effect_at_once,
        a_failed_parent_is_not_waited_for_after_a_release,
        an_existing_failed_parent_cancels_a_whole_chain_of_one_call,
        a_cancelled_child_stays_cancelled_when_its_parent_is_retried,
        a_child_cancelled_on_request_stays_cancelled_when_its_parent_completes,
        a_child_that_was_retried_no_longer_waits,
    }
    held_jobs {
        a_released_job_is_eligible_from_then_on,
        a_job_released_before_its_time_waits_for_it,
        a_held_job_is_not_released_by_its_time,
        only_a_held_job_can_be_released,
    }
    claim {
        a_claim_returns_everything_that_a_worker_needs,
        a_claimed_job_is_running_and_owned_by_its_worker,
        an_empty_store_has_nothing_to_claim,
        only_pending_jobs_are_claimed,
        higher_priority_comes_first_then_longer_eligible_then_lower_id,
        otherwise_equal_jobs_are_claimed_in_the_order_they_were_enqueued,
        claim_order_spans_all_queues_and_types,
        a_worker_gets_only_the_queues_and_types_it_requests,
        a_queue_named_twice_yields_its_jobs_once,
        a_claim_returns_no_more_than_its_limit,
        a_claim_returns_as_many_as_its_limit_while_there_are_enough,
        limits_out_of_range_are_refused,
        every_lease_has_a_token_of_its_own,
        a_new_attempt_gets_the_checkpoint_and_starts_without_progress,
        a_retried_job_is_claimed_after_older_ones,
        an_expired_job_is_not_claimed_before_the_sweep_cancels_it,
        a_job_that_started_before_it_expired_can_be_claimed_again,
        a_job_behind_many_expired_ones_is_claimed,
    }
    leases {
        a_heartbeat_extends_the_lease_by_its_own_length_from_now,
        an_expired_lease_is_held_until_it_is_reaped,
        a_reaped_lease_is_lost,
        a_finished_attempt_has_no_lease,
        a_token_needs_the_right_job_counter_and_secret,
        a_heartbeat_reports_a_cancel_request_and_extends_the_lease,
        statuses_are_in_the_order_of_the_tokens,
    }
    finish {
        a_completed_job_keeps_its_result_and_no_history,
        a_finished_job_keeps_its_last_worker_and_has_no_lease,
        a_failed_attempt_is_recorded_and_retried_after_its_back_off,
        the_back_off_grows_with_every_failure_up_to_its_cap,
        jitter_adds_no_more_than_its_share,
        a_worker_can_set_the_retry_delay,
        a_job_dies_when_its_last_attempt_fails,
        a_fatal_failure_kills_a_job_at_once,
        a_success_after_a_failure_is_recorded,
        a_snoozed_job_runs_again_later_and_uses_no_attempt,
        a_released_attempt_makes_the_job_claimable_and_uses_no_attempt,
        a_worker_can_cancel_its_job_without_a_request,
        a_late_outcome_counts_until_the_lease_is_reaped,
        an_outcome_without_the_lease_changes_nothing,
        a_token_must_match_in_every_part,
        of_several_tokens_of_one_job_only_the_current_one_counts,
        one_refused_report_does_not_affect_the_others,
        a_call_with_too_many_reports_is_refused,
        delays_out_of_range_are_refused,
        errors_are_made_storable,
        only_the_latest_attempts_are_kept,
    }
    repeated_outcomes {
        every_outcome_can_be_reported_again,
        a_success_after_a_failure_can_be_reported_again,
        a_result_that_is_formatted_differently_is_the_same,
        a_repeat_gets_the_first_answer_whatever_happened_since,
        a_repeat_is_answered_after_a_redrive,
        a_different_outcome_with_a_used_token_is_refused,
        a_different_result_with_a_used_token_is_refused,
        an_outcome_after_a_lost_lease_is_refused,
        of_two_outcomes_in_one_call_the_first_counts,
        an_outcome_for_a_pruned_job_is_refused,
    }
    progress {
        progress_and_checkpoint_stay_until_they_are_updated,
        progress_does_not_count_as_a_change_of_state,
        only_the_owner_can_record_progress,
        an_owner_with_an_expired_lease_can_record_progress,
        progress_out_of_range_is_refused,
        a_finished_job_keeps_its_last_progress,
    }
    logs {
        log_lines_are_in_the_order_they_were_written,
        a_log_line_has_the_number_of_its_attempt,
        log_pages_hold_the_lines_of_one_job,
        several_logs_are_read_from_cursors_in_one_call,
        only_the_owner_can_append_log_lines,
        a_call_with_too_many_or_too_long_lines_is_refused,
        unknown_jobs_and_pages_out_of_range_are_refused,
    }
    cancel {
        a_waiting_job_is_cancelled_at_once,
        a_running_job_only_gets_a_request,
        cancelling_a_cancelled_job_succeeds_and_changes_nothing,
        a_finished_job_cannot_be_cancelled,
        an_unknown_job_cannot_be_cancelled,
        a_job_completes_despite_a_cancel_request,
        any_other_outcome_after_a_cancel_request_cancels_the_job,
        reaping_or_timing_out_a_job_with_a_cancel_request_cancels_it,
    }
    retry {
        a_retried_job_is_pending_and_keeps_its_attempts,
        an_exhausted_job_gets_one_more_attempt,
        a_retry_resets_the_crash_loop,
        a_cancelled_job_can_be_retried,
        only_dead_and_cancelled_jobs_can_be_retried,
        many_jobs_are_retried_newest_first_page_by_page,
        following_the_cursors_retries_each_job_once_even_if_it_dies_again,
        one_call_scans_a_bounded_number_of_jobs_and_returns_a_cursor,
        only_matching_dead_and_cancelled_jobs_are_retried,
        limits_out_of_range_are_refused,
    }
    queues_and_priority {
        a_paused_queue_yields_no_jobs_until_it_is_resumed,
        running_jobs_of_a_paused_queue_continue,
        paused_queues_are_listed_by_name,
        a_job_with_raised_priority_is_claimed_first,
        a_priority_set_during_an_attempt_persists,
        the_priority_of_a_finished_job_cannot_change,
    }
    sweeps {
        a_job_is_promoted_when_its_time_has_come,
        a_retrying_job_is_promoted_after_its_back_off,
        jobs_are_promoted_longest_due_first,
        a_job_that_did_not_start_in_time_expires,
        a_job_that_has_started_does_not_expire,
        a_parent_and_its_child_that_expire_together_both_have_reason_expired,
        jobs_expire_longest_overdue_first,
        a_lease_is_reaped_only_after_it_expired,
        leases_are_reaped_longest_expired_first,
        losses_in_a_row_are_a_crash_loop,
        any_outcome_from_a_worker_resets_the_crash_loop,
        a_job_that_lost_its_last_attempt_is_dead,
        sweep_limits_out_of_range_are_refused,
        sweeping_an_empty_store_finds_nothing,
    }
    timeouts {
        a_timed_out_attempt_backs_off_like_a_failure,
        heartbeats_do_not_postpone_a_timeout,
        a_job_dies_when_its_last_attempt_times_out,
        every_attempt_has_its_own_timeout,
        a_job_without_a_timeout_or_without_a_lease_never_times_out,
        attempts_time_out_longest_overdue_first,
        a_worker_can_report_a_timeout_before_the_sweep,
        a_job_dies_when_its_worker_reports_its_last_attempt_as_timed_out,
        a_timeout_reported_after_the_sweep_gets_the_same_answer,
    }
    workers {
        a_worker_is_listed_as_it_registered,
        a_heartbeat_updates_a_worker,
        a_heartbeat_does_not_register_a_worker,
        a_new_instance_of_a_worker_starts_over,
        registering_again_keeps_the_directive,
        a_worker_that_counts_as_dead_registers_anew,
        a_worker_counts_as_dead_after_its_own_interval_by_the_clock_of_the_store,
        a_worker_that_drains_on_its_own_is_listed_as_draining,
        an_instance_whose_name_was_taken_cannot_change_the_new_one,
        an_update_without_an_instance_changes_nothing_of_a_named_instance,
        the_store_has_its_own_time,
        a_removed_worker_keeps_its_leases,
        silent_workers_are_forgotten_longest_silent_first,
        workers_are_listed_by_name_page_by_page,
        a_heartbeat_returns_the_directive,
    }
    bulk_operations {
        an_operation_is_stored_as_it_was_requested,
        jobs_enqueued_later_are_excluded,
        an_invalid_operation_is_refused,
        steps_add_up_until_the_last,
        a_step_is_applied_once,
        of_many_concurrent_equal_steps_one_is_applied,
        a_finished_operation_does_not_change,
        a_deposed_leader_cannot_advance_an_operation,
        a_step_applies_to_the_jobs_that_allow_it,
        a_job_that_left_the_states_of_the_filter_is_not_changed,
        a_step_settles_the_dependents_of_jobs_that_it_ends,
        a_job_that_a_step_cancels_with_its_parent_is_counted_as_changed,
        a_step_that_is_not_applied_changes_no_job,
        no_step_is_applied_after_an_abort_and_all_earlier_ones_are_counted,
        operations_are_listed_newest_first,
        running_operations_take_turns,
        a_tenant_has_at_most_twenty_running_operations,
        at_most_a_hundred_operations_run,
        operations_are_pruned_after_their_retention,
    }
    api_keys {
        a_key_is_stored_as_it_was_created,
        an_id_belongs_to_one_key,
        an_invalid_key_is_refused,
        a_key_expires_by_the_clock_of_the_store,
        a_revoked_key_keeps_the_time_of_its_first_revocation,
        keys_are_listed_by_id_page_by_page,
    }
    audit {
        an_entry_is_stored_before_and_after_its_action,
        entries_are_listed_newest_first_page_by_page,
        every_field_of_an_audit_filter_must_match,
        an_invalid_entry_is_refused,
        a_range_of_time_is_read_page_by_page,
        entries_are_pruned_by_age_oldest_first,
    }
    prune {
        finished_jobs_are_pruned_after_the_retention_of_their_state,
        unfinished_jobs_are_never_pruned,
        an_unlimited_retention_keeps_everything,
        retention_counts_from_the_end_of_a_job,
        a_retried_job_is_not_pruned,
        log_lines_are_pruned_by_their_own_age,
        a_step_of_pruning_is_bounded_and_reports_whether_there_is_more,
    }
    inspect {
        an_unknown_job_is_none,
        states_and_summaries_of_several_jobs_are_read_in_one_call,
        a_summary_agrees_with_its_job,
        jobs_are_listed_newest_first_page_by_page,
        page_sizes_out_of_range_are_refused,
        every_field_of_a_filter_must_match,
        a_filter_by_time_includes_its_start_and_excludes_its_end,
        a_list_by_time_scans_only_its_range,
        a_text_filter_matches_literally,
        a_rare_job_is_found_among_many_others,
        depths_count_unfinished_jobs_by_queue_and_state,
        the_age_of_a_queue_is_that_of_its_oldest_claimable_job,
        a_paused_queue_is_listed_even_if_it_is_empty,
        queue_depths_are_listed_by_name_page_by_page,
        the_depth_of_one_queue_equals_its_entry_in_the_list,
    }
    lanes {
        an_empty_store_has_no_lanes,
        lanes_are_listed_once_by_queue_and_type,
        only_claimable_jobs_make_a_lane,
        a_paused_queue_keeps_its_lanes,
        the_first_lanes_up_to_the_limit_are_listed,
        limits_out_of_range_are_refused,
    }
    width {
        a_claim_by_type_finds_its_job_behind_twelve_thousand_lanes_of_other_types,
        a_claim_by_type_finds_its_job_although_a_tenant_fills_twelve_thousand_queues_with_that_type,
        a_claim_by_queue_finds_its_job_behind_twelve_thousand_lanes_of_other_queues,
        a_claim_by_queue_and_type_finds_its_job_behind_twelve_thousand_types_in_its_queue,
        a_claim_of_anything_finds_the_highest_priority_behind_twelve_thousand_lanes,
        a_claim_that_names_a_thousand_queues_and_a_thousand_types_finds_the_only_match,
        claims_of_anything_over_thousands_of_lanes_follow_one_order,
        claims_by_type_over_thousands_of_lanes_follow_one_order,
        claims_by_queue_over_thousands_of_lanes_follow_one_order,
        claims_by_queue_and_type_over_thousands_of_lanes_follow_one_order,
        a_job_enqueued_between_claims_over_many_lanes_takes_its_place_in_the_order,
        concurrent_claims_over_thousands_of_lanes_take_each_job_once,
        held_blocked_delayed_and_running_jobs_of_a_tenant_delay_no_other_tenant,
        paused_queues_with_thousands_of_jobs_hide_nothing,
        resumed_queues_return_their_jobs_in_the_old_order,
        cancelled_expired_and_reprioritized_jobs_leave_no_gap_in_a_wide_backlog,
    }
    changes {
        an_empty_store_has_no_changes,
        without_a_time_only_leased_jobs_are_returned,
        jobs_enqueued_or_finished_since_are_returned_in_their_current_state,
        jobs_finished_before_are_not_returned,
        a_job_that_is_no_longer_leased_leaves_the_leased_pages,
        each_kind_is_limited_and_the_page_says_whether_there_is_more,
        leased_jobs_are_paged_each_once,
        only_cancelled_jobs_are_returned_from_further_back,
        redriven_jobs_are_returned_until_they_finish_again,
        redrives_are_pruned,
        ids_of_unfinished_jobs_are_paged_in_order,
        limits_out_of_range_are_refused,
    }
    dedicated_handle {
        a_dedicated_handle_sees_the_same_jobs,
        wakeups_reach_the_subscribers_of_both_handles,
        a_dedicated_handle_outlives_the_one_it_came_from,
    }
    turns {
        a_first_job_waits_at_most_one_round_of_the_other_tenants,
        tenants_get_equal_shares_whatever_their_backlogs,
        a_lone_tenant_gets_everything,
        shares_follow_weights,
        a_new_weight_counts_from_the_next_claim,
        small_claims_continue_the_turns_of_earlier_ones,
        a_round_reaches_every_one_of_a_thousand_tenants,
        priority_goes_before_fairness,
        the_order_within_a_tenant_is_by_time_of_eligibility,
        splitting_jobs_over_queues_and_types_gains_nothing,
        shares_are_of_the_queues_that_a_worker_requests,
        a_tenant_without_jobs_saves_nothing_up,
        jobs_that_cannot_run_take_no_turn,
        a_retried_job_waits_behind_the_jobs_of_its_tenant,
        settings_of_tenants_can_be_set_and_listed,
        claims_follow_a_reference_scheduler,
    }
    wakeup {
        a_new_claimable_job_wakes_its_queue,
        a_promoted_job_wakes_its_queue,
        a_released_or_reaped_job_wakes_its_queue,
        an_unblocked_or_released_job_wakes_its_queue,
        a_retried_job_and_a_resumed_queue_wake_their_queue,
        every_subscriber_is_woken,
    }
    concurrency {
        sixteen_concurrent_workers_claim_each_of_a_thousand_jobs_once,
        sixty_four_concurrent_requests_with_one_key_make_one_job,
        of_many_concurrent_outcomes_with_one_token_one_counts,
        parents_that_finish_concurrently_unblock_their_child_once,
        a_lease_is_either_reaped_or_finished,
    }
    coordination {
        the_only_candidate_leads_at_once,
        a_leader_that_renews_keeps_its_epoch,
        no_other_node_leads_during_a_term,
        renewing_an_ended_term_begins_a_new_epoch,
        a_deposed_leader_follows,
        a_resignation_lets_another_node_lead_at_once,
        the_leader_is_known_during_its_term,
        of_many_concurrent_candidates_one_leads,
        terms_out_of_range_are_refused,
        sweeps_of_a_deposed_leader_are_refused_and_change_nothing,
        sweeps_after_the_end_of_a_term_succeed_until_another_node_leads,
        nodes_are_listed_as_they_registered_and_with_the_leader,
        an_invalid_node_is_refused,
        silent_nodes_are_forgotten_longest_silent_first,
        next_sweep_times_report_when_each_sweep_has_work,
        a_job_that_waits_for_a_time_wakes_the_timers,
        depths_can_be_folded_without_a_fence,
        tables_can_be_vacuumed_without_a_fence,
    }
    schedules {
        a_schedule_is_stored_as_it_was_put,
        putting_the_same_definition_again_changes_nothing,
        an_edit_of_the_times_counts_from_now_and_records_the_missed_old_ones,
        an_edit_of_anything_else_misses_no_occurrence,
        an_edit_during_a_pause_records_the_skipped_times,
        an_edit_keeps_an_occurrence_that_waits_for_its_jitter,
        every_bad_field_of_a_schedule_is_named_and_nothing_is_stored,
        a_paused_schedule_does_not_fire_and_keeps_its_note,
        a_note_that_is_too_long_is_refused,
        nominal_times_of_a_pause_are_one_skipped_occurrence,
        a_pause_between_two_nominal_times_records_nothing,
        times_backfilled_during_a_pause_are_not_skipped,
        deleting_a_schedule_deletes_its_ledger_and_keeps_its_jobs,
        calls_on_an_unknown_schedule_name_it,
        schedules_are_listed_by_name_page_by_page,
    }
    tenants {
        a_cursor_does_not_reveal_a_job_of_another_tenant,
        a_page_of_schedules_holds_only_those_of_the_tenant,
        a_page_of_operations_holds_only_those_of_the_tenant,
        a_page_of_audit_entries_holds_only_those_of_the_tenant,
        no_call_reaches_a_schedule_of_another_tenant,
        a_schedule_keeps_its_tenant_until_it_is_deleted,
        a_reused_schedule_name_inherits_nothing_from_its_former_tenant,
        a_parent_of_another_tenant_is_refused_like_an_unknown_one,
        jobs_of_several_tenants_in_one_call_depend_only_on_their_own,
        of_tenants_that_create_one_name_concurrently_one_succeeds,
    }
    firing {
        a_due_occurrence_has_a_job_and_a_ledger_entry,
        the_job_of_an_occurrence_follows_its_template,
        repeated_sweeps_fire_a_nominal_time_once,
        concurrent_sweeps_fire_a_nominal_time_once,
        schedules_fire_longest_due_first_up_to_the_limit,
        misfire_skip_records_late_occurrences_as_missed,
        misfire_skip_fires_occurrences_on_time,
        by_default_the_latest_late_occurrence_fires_once,
        by_default_no_late_occurrence_fires_beside_one_on_time,
        misfire_catch_up_fires_late_occurrences_up_to_its_limit,
        long_missed_times_are_one_occurrence_and_the_newest_one_each,
        a_long_backlog_fires_in_several_steps,
        a_backlog_delays_no_other_schedule,
        jitter_delays_an_occurrence_and_keeps_its_nominal_time,
        nothing_fires_before_the_start_or_at_and_after_the_end,
        a_deposed_leader_fires_nothing,
        next_sweep_times_report_when_a_schedule_is_due,
    }
    overlap {
        overlap_skip_skips_while_the_earlier_job_is_unfinished,
        a_job_that_will_be_retried_is_unfinished,
        a_triggered_job_counts_as_unfinished,
        overlap_allow_runs_all,
        unfinished_jobs_under_overlap_allow_count_for_a_stricter_policy,
        overlap_allow_tracks_a_bounded_number_of_open_jobs,
        overlap_buffer_one_waits_for_the_earlier_job_to_complete,
        overlap_buffer_one_waits_for_the_earlier_job_to_die,
        overlap_buffer_one_waits_for_the_earlier_job_to_be_cancelled,
        overlap_cancel_running_cancels_the_earlier_job,
        overlap_skip_fires_the_first_of_several_due_at_once,
        overlap_buffer_one_buffers_the_second_of_several_due_at_once,
        overlap_cancel_running_fires_the_last_of_several_due_at_once,
    }
    backfill {
        a_trigger_enqueues_at_once_and_keeps_the_next_time,
        a_paused_schedule_can_be_triggered,
        every_trigger_has_its_own_occurrence,
        a_backfill_includes_its_start_and_excludes_its_end,
        backfilling_a_range_again_changes_nothing,
        a_backfill_can_have_its_own_overlap_policy,
        empty_and_too_long_ranges_are_refused,
        missed_occurrences_can_be_backfilled,
        future_ranges_are_refused_and_future_times_not_backfilled,
        times_that_the_schedule_will_still_fire_are_not_backfilled,
        a_time_that_waits_for_its_jitter_is_not_backfilled,
        a_backfill_stays_between_start_and_end_of_the_schedule,
        a_trigger_does_not_take_a_nominal_time_of_the_schedule,
        occurrences_are_listed_newest_first_page_by_page,
        occurrences_are_pruned_after_their_retention,
        a_range_of_long_ago_is_not_backfilled_twice,
    }
    metrics {
        an_enqueued_job_is_counted_once,
        a_finished_job_is_counted_once,
        dependents_that_end_with_their_parents_are_counted,
        jobs_that_sweeps_end_are_counted,
        occurrences_of_schedules_are_counted,
    }
    invariants {
        states_counts_and_lists_agree_after_any_sequence_of_calls,
    }
}
