//! The specification of a store, in the form of tests that every backend passes.
//!
//! A backend's own test file names a function that makes a fresh, empty store, and gets one test per promise:
//!
//! ```text
//! async fn harness() -> orchestrix_conformance::Harness { … }
//! orchestrix_conformance::conformance_suite!(harness);
//! ```
//!
//! All time is virtual: a [`Harness`] comes with the clock that its store goes by, and no test sleeps or measures how
//! long anything took. A test has its store to itself and knows it by the trait alone.
//!
//! The list below is the table of contents. A test that is written and not listed is dead code, which the build
//! refuses; one that is listed and not written does not compile.

#![deny(dead_code)]

mod apart;
mod audit;
mod backfill;
mod cancel;
mod claim;
mod concurrency;
mod coordination;
mod counts;
mod dependencies;
mod dependency_failure;
mod enqueue;
mod enqueue_many;
mod finish;
mod firing;
mod fixture;
mod heartbeat;
mod hold;
mod idempotency;
mod inspect;
mod keys;
mod lanes;
mod logs;
mod operate;
mod operations;
mod overlap;
mod progress;
mod prune;
mod random;
mod recent;
mod repeat;
mod retry;
mod schedules;
mod sweep;
mod tenants;
mod time_out;
mod wakeup;
mod worker;

use std::{any::Any, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use orchestrix_core::Timestamp;

use orchestrix_store::{Clock, ManualClock, Store};

/// One fresh store and the clock it goes by.
pub struct Harness {
    /// An empty store that nobody else uses.
    pub store: Arc<dyn Store>,
    /// The clock that the store takes its time from.
    pub clock: Box<dyn TestClock>,
    /// Whatever has to live as long as the store, such as a database that goes away when it is dropped.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness").finish_non_exhaustive()
    }
}

/// A clock that moves when a test says so.
#[async_trait]
pub trait TestClock: Send + Sync {
    /// Moves it forward; on return, the store goes by the new time.
    async fn advance(&self, by: Duration);

    /// The time that the store goes by.
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

// Makes of one list the functions that other crates can call and the macro that turns each into a test there.
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

        /// Runs the conformance suite: one test per promise of a store, each on a store of its own.
        ///
        /// Takes the path of an `async fn() -> Harness` and needs `tokio` among the caller's dependencies.
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
        a_job_with_every_default_is_pending_at_once,
        every_field_of_a_request_comes_back,
        a_payload_comes_back_byte_for_byte,
        a_delayed_job_is_scheduled_for_its_delay_from_now,
        a_delay_of_nothing_is_no_delay,
        a_job_for_a_later_time_is_scheduled_for_it,
        a_job_for_a_time_that_has_passed_is_eligible_now,
        a_held_job_is_created_whatever_else_it_waits_for,
        digits_finer_than_microseconds_are_cut_off,
        every_bad_field_is_named_and_nothing_is_recorded,
        a_job_by_itself_cannot_depend_on_a_reference,
    }
    enqueue_many {
        a_call_of_nothing_answers_with_nothing,
        answers_come_in_the_order_of_the_jobs,
        bad_fields_are_named_by_position_and_refuse_the_whole_call,
        an_unknown_parent_refuses_the_whole_call,
        a_call_may_hold_ten_thousand_jobs_and_no_more,
        jobs_of_one_call_may_depend_on_each_other,
        cycles_and_unknown_references_are_refused,
    }
    idempotency {
        a_repeat_is_the_first_job_as_it_now_stands,
        a_different_request_under_a_known_key_is_refused,
        how_a_payload_is_spelt_makes_no_difference,
        a_key_is_its_tenants_and_its_types_own,
        jobs_without_a_key_are_never_the_same,
        a_repeat_inside_one_call_is_the_same_job,
        two_requests_under_one_key_refuse_their_call,
        one_reused_key_refuses_the_whole_call,
        of_several_reused_keys_the_first_of_the_call_is_named,
        a_call_repeated_is_answered_with_the_same_jobs,
        a_reference_to_a_repeat_means_the_job_that_exists,
        a_key_outlives_its_job_and_remembers_how_it_ended,
        a_repeat_is_answered_even_when_its_parent_is_forgotten,
    }
    dependencies {
        a_job_with_an_unfinished_parent_is_blocked,
        a_parent_that_has_completed_is_not_waited_for,
        a_parent_that_nobody_knows_is_refused,
        a_parent_that_was_pruned_is_refused,
        only_the_last_parent_to_complete_unblocks,
        a_parent_named_twice_is_waited_for_once,
        a_parent_that_will_be_tried_again_is_still_waited_for,
        a_job_becomes_eligible_when_its_last_parent_completes,
        a_job_that_is_unblocked_before_its_time_waits_for_it,
        its_time_alone_does_not_unblock_a_job,
        a_held_job_waits_for_its_parents_all_the_same,
        what_parents_left_behind_reaches_the_child_in_order_of_their_ids,
        whatever_ends_a_job_moves_on_those_that_wait_for_it_at_once,
    }
    dependency_failure {
        a_dead_parent_cancels_its_children_by_default,
        a_cancelled_parent_counts_as_failed,
        a_held_child_is_cancelled_too,
        one_failed_parent_of_many_is_enough_to_cancel,
        cancelling_runs_down_a_long_chain,
        sweeps_that_end_jobs_settle_their_children,
        a_child_that_may_run_runs_all_the_same,
        a_child_to_be_held_waits_for_a_person_and_then_for_its_other_parents,
        a_held_child_stays_held_when_its_last_parent_completes,
        a_parent_that_failed_before_is_dealt_with_at_once,
        what_failed_before_is_not_waited_for_after_a_release,
        a_failed_parent_outside_cancels_a_whole_chain_inside_one_call,
        a_cancelled_child_stays_so_when_its_parent_gets_another_chance,
        a_child_cancelled_by_hand_stays_so_when_its_parent_completes,
        a_child_that_was_retried_no_longer_waits,
    }
    hold {
        a_job_let_go_is_eligible_from_then_on,
        a_job_let_go_before_its_time_waits_for_it,
        its_time_alone_does_not_let_a_held_job_go,
        only_a_held_job_can_be_let_go,
    }
    claim {
        a_worker_is_handed_all_it_needs,
        a_claimed_job_is_running_and_its_workers,
        an_empty_store_gives_nothing,
        only_pending_jobs_are_given,
        higher_priority_comes_first_then_longer_eligible_then_lower_id,
        jobs_alike_in_all_else_come_in_the_order_they_were_given,
        the_order_is_one_over_all_queues_and_types,
        a_worker_gets_only_the_queues_and_types_it_asks_for,
        naming_a_queue_twice_gives_its_jobs_once,
        no_more_than_the_limit_is_given,
        no_less_than_the_limit_is_given_while_there_is_enough,
        limits_out_of_range_are_refused,
        every_lease_has_a_token_of_its_own,
        a_new_attempt_gets_the_checkpoint_and_begins_without_progress,
        a_retried_job_goes_to_the_back,
        a_job_that_came_too_late_is_not_given_though_nobody_swept_it_yet,
        a_job_that_started_in_time_may_be_given_again_later,
        what_stands_behind_many_that_came_too_late_is_given,
    }
    heartbeat {
        a_heartbeat_extends_the_lease_by_its_own_length_from_now,
        a_lease_that_ran_out_is_still_held_until_somebody_takes_it_back,
        a_lease_that_was_taken_back_is_lost,
        a_finished_attempt_has_no_lease,
        a_token_needs_the_right_job_counter_and_secret,
        a_wish_to_cancel_reaches_the_owner_and_the_lease_is_kept,
        many_tokens_are_answered_in_their_order,
    }
    finish {
        a_completed_job_keeps_its_result_and_no_history,
        a_finished_job_shows_who_ran_it_last_and_is_leased_to_nobody,
        a_failed_attempt_is_recorded_and_the_next_waits_out_its_back_off,
        the_back_off_grows_with_every_failure_up_to_its_cap,
        jitter_adds_no_more_than_its_share,
        a_worker_may_say_how_long_to_wait,
        the_last_attempt_to_fail_is_the_death_of_a_job,
        a_failure_that_no_retry_mends_kills_at_once,
        a_success_after_a_failure_is_part_of_the_history,
        a_snoozed_job_comes_back_later_and_lost_no_attempt,
        a_released_job_is_claimable_at_once_and_lost_no_attempt,
        a_worker_may_cancel_its_job_unasked,
        a_late_verdict_counts_while_nobody_took_the_lease_back,
        a_verdict_without_the_lease_changes_nothing,
        a_token_must_be_right_in_every_part,
        of_several_tokens_of_one_job_only_the_current_one_counts,
        one_refused_item_leaves_the_others_standing,
        too_many_items_are_refused_whole,
        waits_out_of_range_are_refused,
        error_texts_are_made_storable,
        only_the_latest_attempts_are_kept,
    }
    repeat {
        every_verdict_may_be_told_again,
        a_success_that_was_not_the_first_attempt_may_be_told_again,
        a_result_that_is_written_otherwise_is_the_same,
        a_repeat_is_answered_as_the_first_time_whatever_happened_since,
        a_repeat_is_answered_after_a_redrive,
        another_verdict_under_a_used_token_is_refused,
        another_result_under_a_used_token_is_refused,
        a_lost_attempt_has_no_verdict_to_repeat,
        of_two_verdicts_in_one_call_the_first_counts,
        a_verdict_on_a_forgotten_job_is_refused,
    }
    progress {
        what_was_said_last_stays_until_it_is_said_anew,
        progress_does_not_count_as_a_change_of_state,
        only_the_owner_may_speak,
        an_owner_past_its_lease_may_still_speak,
        progress_out_of_range_is_refused,
        a_finished_job_keeps_its_last_progress,
    }
    logs {
        lines_come_back_in_the_order_they_were_written,
        a_line_knows_its_attempt,
        a_job_sees_its_own_lines_only_and_page_by_page,
        the_ends_of_several_logs_are_read_at_once,
        only_the_owner_may_write,
        too_much_at_once_is_refused_whole,
        unknown_jobs_and_pages_out_of_range_are_refused,
    }
    cancel {
        a_waiting_job_is_cancelled_at_once,
        a_running_job_only_gets_a_request,
        cancelling_again_is_fine_and_changes_nothing,
        a_finished_job_cannot_be_cancelled,
        an_unknown_job_cannot_be_cancelled,
        a_success_stands_though_somebody_asked_to_cancel,
        any_other_end_of_a_job_to_be_cancelled_cancels_it,
        a_silent_or_slow_owner_of_a_job_to_be_cancelled_loses_it_for_good,
    }
    retry {
        a_retried_job_is_pending_with_its_history_and_a_clean_slate,
        an_exhausted_job_gets_one_more_attempt,
        a_crash_loop_is_counted_anew,
        a_cancelled_job_can_be_retried,
        only_dead_and_cancelled_jobs_can_be_retried,
        many_are_retried_newest_first_and_step_by_step,
        whoever_goes_on_retries_each_once_though_they_die_again_at_once,
        one_call_looks_at_so_many_and_tells_where_to_go_on,
        of_many_only_the_dead_and_cancelled_that_match_are_retried,
        limits_out_of_range_are_refused,
    }
    operate {
        a_paused_queue_gives_nothing_until_it_is_resumed,
        what_runs_in_a_paused_queue_goes_on,
        paused_queues_are_known_by_name,
        a_more_urgent_job_overtakes,
        an_urgency_outlasts_the_attempt_it_was_given_in,
        a_finished_job_has_no_urgency_to_change,
    }
    sweep {
        a_job_is_promoted_when_its_time_has_come,
        a_retrying_job_is_promoted_after_its_back_off,
        the_longest_due_are_promoted_first,
        a_job_that_did_not_start_in_time_is_cancelled_as_expired,
        a_job_that_has_started_does_not_expire,
        parent_and_child_that_expire_together_both_say_so,
        the_longest_late_expire_first,
        a_lease_is_taken_back_only_when_it_has_run_out,
        the_longest_silent_are_reaped_first,
        losses_in_a_row_are_a_crash_loop,
        any_word_from_the_worker_breaks_a_row_of_losses,
        a_job_that_lost_its_last_attempt_is_dead,
        steps_of_nothing_or_too_much_are_refused,
        sweeping_an_empty_store_finds_nothing,
    }
    time_out {
        an_attempt_over_its_time_backs_off_like_a_failure,
        heartbeats_do_not_put_a_timeout_off,
        the_last_attempt_over_its_time_is_the_death_of_a_job,
        every_attempt_has_its_own_time,
        a_job_without_a_timeout_or_without_an_owner_never_times_out,
        the_longest_over_their_time_end_first,
        a_worker_that_stops_its_attempt_in_time_says_the_same,
        the_last_attempt_that_a_worker_stopped_is_the_death_of_a_job,
        a_worker_that_comes_after_the_sweep_is_answered_alike,
    }
    worker {
        a_worker_is_known_as_it_said,
        a_heartbeat_shows_that_a_worker_lives,
        a_heartbeat_of_a_stranger_makes_it_no_worker,
        another_start_of_a_worker_begins_anew,
        a_worker_that_says_the_same_again_keeps_what_it_was_told,
        whoever_was_silent_for_too_long_is_made_known_anew,
        a_worker_counts_as_dead_by_its_own_measure_and_the_clock_of_the_store,
        a_worker_that_drains_by_itself_is_shown_so,
        one_whose_name_was_taken_speaks_for_nobody_else,
        whoever_names_no_start_changes_nothing_of_one_that_did,
        the_time_of_the_store_is_its_own,
        a_removed_worker_keeps_its_leases,
        the_longest_silent_are_forgotten_first,
        workers_are_listed_by_name_page_by_page,
        what_a_worker_should_do_is_told_with_its_next_heartbeat,
    }
    operations {
        an_operation_is_known_as_it_was_begun,
        jobs_that_come_later_are_none_of_its,
        an_operation_that_breaks_a_rule_is_refused,
        steps_add_up_until_the_last,
        a_step_counts_once,
        of_many_who_take_the_same_step_one_counts,
        an_operation_that_is_over_stays_as_it_is,
        a_deposed_leader_moves_no_operation_on,
        a_step_does_it_to_the_jobs_that_can_take_it,
        a_job_that_has_left_the_states_of_the_filter_is_left_alone,
        those_who_wait_for_jobs_that_a_step_ends_are_told,
        a_job_that_a_step_cancels_with_its_parent_is_counted_as_changed,
        a_step_that_is_not_taken_changes_no_job,
        nothing_is_done_after_an_operation_was_stopped_and_all_that_was_is_counted,
        operations_are_listed_newest_first,
        open_operations_take_turns,
        no_tenant_has_more_than_twenty_under_way,
        no_more_than_a_hundred_run_at_once,
        operations_are_forgotten_so_long_after_they_were_over,
    }
    keys {
        a_key_is_known_as_it_was_made,
        an_id_stands_for_one_key,
        a_key_that_breaks_a_rule_is_refused,
        a_key_ends_by_the_clock_of_the_store,
        a_key_that_was_taken_back_keeps_the_time_it_was_first,
        keys_are_listed_by_id_page_by_page,
    }
    audit {
        a_deed_is_on_record_before_and_after_it_was_done,
        the_newest_come_first_page_by_page,
        every_part_of_a_filter_of_deeds_must_match,
        a_deed_that_breaks_a_rule_is_refused,
        a_stretch_of_time_is_read_page_by_page,
        deeds_are_forgotten_by_their_age_the_oldest_first,
    }
    prune {
        finished_jobs_are_forgotten_each_after_its_own_time,
        what_is_not_finished_is_never_forgotten,
        what_is_kept_for_ever_stays,
        time_counts_from_the_end_of_a_job,
        a_retried_job_is_kept,
        log_lines_are_forgotten_by_their_own_age,
        a_step_is_bounded_and_says_whether_there_is_more,
    }
    inspect {
        an_unknown_job_is_nothing,
        of_several_jobs_it_is_told_where_they_stand,
        a_summary_agrees_with_its_job,
        a_list_shows_the_newest_first_page_by_page,
        a_page_must_have_a_size_within_limits,
        every_part_of_a_filter_must_match,
        a_filter_by_time_takes_in_its_beginning_and_not_its_end,
        a_list_by_time_begins_at_its_end_and_stops_at_its_beginning,
        text_is_looked_for_as_it_is_written,
        a_rare_job_is_found_behind_many_others,
        depths_count_what_is_unfinished_by_queue_and_state,
        the_age_of_a_queue_is_that_of_its_longest_claimable_job,
        a_paused_queue_is_counted_even_when_it_is_empty,
        queues_are_counted_by_name_page_by_page,
        one_queue_is_counted_as_it_is_among_others,
    }
    lanes {
        an_empty_store_has_no_lanes,
        lanes_are_listed_once_by_queue_and_type_however_full,
        only_what_can_be_claimed_makes_a_lane,
        a_paused_queue_keeps_its_lanes,
        no_more_lanes_than_asked_for_are_listed_and_the_first_of_them,
        limits_out_of_range_are_refused,
    }
    recent {
        an_empty_store_shows_nothing_but_the_time,
        without_a_time_what_is_leased_is_shown_and_nothing_else,
        what_was_recorded_or_ended_since_is_shown_as_it_stands,
        what_ended_before_is_not_shown,
        a_job_that_is_no_longer_leased_is_not_shown_as_such,
        no_more_of_a_kind_than_asked_for_is_shown_and_that_is_told,
        leased_jobs_are_shown_a_page_at_a_time_each_once,
        what_was_cancelled_is_shown_from_further_back_and_nothing_else,
        what_was_given_another_chance_is_shown_until_it_is_over_again,
        that_a_job_was_given_another_chance_is_forgotten,
        ids_of_unfinished_jobs_are_shown_a_page_at_a_time_in_their_order,
        limits_out_of_range_are_refused,
    }
    apart {
        a_store_apart_holds_the_same_jobs,
        wake_ups_reach_the_subscribers_of_both,
        a_store_apart_outlives_the_first,
    }
    wakeup {
        a_new_job_that_is_claimable_wakes_its_queue,
        a_promoted_job_wakes_its_queue,
        a_job_handed_back_or_taken_back_wakes_its_queue,
        a_job_unblocked_or_let_go_wakes_its_queue,
        a_retried_job_and_a_resumed_queue_wake,
        every_subscriber_is_woken,
    }
    concurrency {
        sixteen_workers_never_share_one_of_a_thousand_jobs,
        sixty_four_callers_of_one_key_make_one_job,
        of_many_verdicts_under_one_token_one_counts,
        parents_that_finish_together_unblock_their_child_once,
        a_lease_is_either_reaped_or_finished,
    }
    coordination {
        a_lone_node_leads_at_once,
        a_leader_that_renews_keeps_its_epoch,
        nobody_else_leads_while_a_term_runs,
        a_term_that_ran_out_is_not_renewed_but_begun_anew,
        a_leader_that_was_deposed_follows,
        whoever_resigns_is_succeeded_at_once,
        who_leads_is_known_for_as_long_as_the_term_runs,
        of_many_candidates_one_leads,
        terms_out_of_range_are_refused,
        a_deposed_leaders_sweeps_are_refused_and_change_nothing,
        the_leaders_sweeps_are_done_even_past_its_term_while_nobody_took_over,
        nodes_are_known_as_they_say_and_by_who_leads,
        a_node_that_says_nonsense_is_refused,
        silent_nodes_are_forgotten_the_longest_silent_first,
        the_agenda_says_what_is_next_and_when,
        a_job_that_begins_to_wait_for_a_time_is_hinted_at,
        depths_can_be_folded_by_anybody,
    }
    schedules {
        a_schedule_is_known_as_it_was_put,
        the_same_again_changes_nothing,
        an_edit_of_its_times_counts_from_now_and_tells_what_the_old_ones_came_to,
        an_edit_of_anything_else_loses_no_time,
        an_edit_in_a_pause_tells_what_had_passed_in_it,
        an_edit_does_not_lose_what_waits_for_its_jitter,
        every_bad_field_is_named_and_nothing_is_kept,
        a_paused_schedule_does_not_fire_and_says_why,
        a_note_that_is_too_long_is_refused,
        what_passed_in_a_pause_is_one_line_and_is_not_fired,
        a_pause_between_two_times_leaves_no_line,
        what_was_filled_in_a_pause_is_not_passed_over,
        a_deleted_schedule_is_forgotten_with_its_ledger_and_its_jobs_stay,
        an_unknown_schedule_is_refused_by_its_name,
        schedules_are_listed_by_name_page_by_page,
    }
    tenants {
        a_cursor_is_no_job_of_another_tenant,
        a_page_of_schedules_holds_those_of_the_tenant_alone,
        a_page_of_operations_holds_those_of_the_tenant_alone,
        a_page_of_the_audit_holds_deeds_of_the_tenant_alone,
        no_verb_reaches_a_schedule_of_another,
        a_schedule_is_its_tenants_for_as_long_as_it_is_there,
        a_name_that_is_free_again_has_nothing_of_the_tenant_that_had_it,
        a_job_of_another_tenant_is_as_unknown_as_one_that_is_not_there,
        jobs_of_several_tenants_in_one_call_wait_for_their_own_alone,
        of_tenants_that_take_a_name_at_once_one_has_it,
    }
    firing {
        an_occurrence_has_a_job_and_a_line,
        what_the_job_says_of_itself_is_kept,
        a_nominal_time_fires_once_however_often_it_is_asked_for,
        a_nominal_time_fires_once_whoever_fires,
        the_longest_due_fire_first_and_no_more_than_asked_for,
        late_ones_are_let_go_if_told_to_skip,
        whatever_is_on_time_fires_though_others_are_let_go,
        of_late_ones_the_latest_fires_once_by_default,
        no_late_one_fires_beside_one_on_time_by_default,
        late_ones_are_caught_up_with_up_to_the_limit,
        what_was_missed_for_long_is_one_line_and_the_newest_each_one,
        more_than_one_step_may_fire_is_fired_in_several,
        a_backlog_keeps_no_other_waiting,
        jitter_puts_an_occurrence_off_and_keeps_its_time,
        nothing_fires_before_the_start_nor_from_the_end_on,
        a_deposed_leader_fires_nothing,
        the_agenda_says_when_the_next_is_due,
    }
    overlap {
        one_is_skipped_while_the_earlier_job_is_unfinished,
        a_job_that_will_be_tried_again_is_unfinished,
        a_job_started_by_hand_counts_as_unfinished,
        all_run_if_they_may,
        what_runs_where_all_may_is_seen_by_a_stricter_rule,
        where_all_may_run_the_latest_are_remembered_within_bounds,
        one_waits_for_the_earlier_to_complete,
        one_waits_for_the_earlier_to_die,
        one_waits_for_the_earlier_to_be_cancelled,
        what_runs_is_asked_to_stop_for_the_new_one,
        of_several_at_once_the_first_runs_and_the_others_are_skipped,
        of_several_at_once_the_second_waits_for_the_first,
        of_several_at_once_the_last_takes_the_place_of_all,
    }
    backfill {
        a_job_by_hand_comes_at_once_and_moves_nothing,
        a_paused_schedule_can_be_started_by_hand,
        every_job_by_hand_has_a_line_of_its_own,
        a_past_range_is_filled_from_its_first_until_before_its_last,
        a_range_filled_again_stays_as_it_is,
        a_range_may_have_a_rule_of_its_own_about_overlaps,
        ranges_that_are_none_or_too_long_are_refused,
        what_was_missed_can_be_filled,
        a_range_that_lies_ahead_is_refused_and_nothing_ahead_is_filled,
        what_its_schedule_will_still_fire_is_not_filled,
        what_waits_for_its_jitter_is_not_filled,
        a_range_is_filled_only_between_start_and_end,
        a_job_by_hand_leaves_a_nominal_time_to_its_schedule,
        a_ledger_shows_the_newest_first_page_by_page,
        lines_are_forgotten_so_long_after_they_were_written,
        a_range_of_long_ago_is_not_filled_twice,
    }
    counts {
        a_job_counts_once_when_it_is_recorded,
        a_job_counts_once_when_it_is_over,
        dependents_count_that_end_with_their_parents,
        what_time_ends_counts,
        what_schedules_do_counts,
    }
    random {
        the_books_balance_after_any_sequence_of_steps,
    }
}
