"""Attacks from outside that once broke a promise of the documentation, and the tests that each promise is kept now.

They are numbered a1 to a18. Some are about one storage alone: a file that is replaced, a server that never answers.
"""

from benchmarks.reliability.items import DAMAGE, FILE, LEASES, NO_STORAGE, OPTUNA, OUTAGE, RUN, SERVER, SIGNALS, of

CRASH, REPLACED, LOG, CONNECTIONS, ASK_LOCK, ADDRESSES, FOUND_ALIVE = (
    f"tests/storage/test_{name}.py"
    for name in ("crash", "replaced", "log_damage", "connections", "ask_lock", "addresses", "workers")
)  # fmt: skip
APPROVAL, CLI_MAIN, SHOW = (f"tests/cli/test_{name}.py" for name in ("approval", "main", "show"))
EXITS, TREE, SILENT = (f"tests/execution/test_{name}.py" for name in ("exiting_objectives", "process_tree", "silent_server"))
CHECKPOINTS, RESULTS, REPLAY = (f"tests/state/test_{name}.py" for name in ("checkpoints", "results", "replay"))
TEXTS, EXPORT = "tests/data/test_error_texts.py", "tests/report/test_export.py"
PROGRAM, READER = (f"tests/program/test_{name}.py" for name in ("program_objective", "result_reader"))

ATTACKS = (
    of("a1", "checkpoints of another study",
       (CHECKPOINTS, "test_a_study_that_is_removed_and_made_anew_does_not_find_the_checkpoints_of_the_first "
                     "test_one_name_in_two_storages_is_two_studies "
                     "test_another_process_finds_the_identity_and_the_checkpoints_of_a_study "
                     "test_a_study_without_a_proper_identity_gets_one_for_good "
                     "test_a_study_that_was_replaced_while_it_was_open_does_not_take_the_identity_of_the_new_one "
                     "test_files_that_do_not_name_this_study_are_not_given_to_a_trial "
                     "test_only_folders_of_the_study_are_removed"),
       (APPROVAL, "test_no_study_continues_from_the_checkpoints_of_another "
                  "test_rm_removes_the_folder_of_the_study_and_no_other")),
    of("a2", "a power failure at every write, also through a link",
       (CRASH, "test_a_power_failure_loses_no_result_that_was_told "
               "test_a_power_failure_at_every_moment_loses_no_result_that_was_told test_without_the_flush_results_are_lost "
               "test_after_a_power_failure_the_study_goes_on test_a_flush_that_fails_is_an_error"), storages=FILE),
    of("a3", "a database that is replaced during a run",
       (REPLACED, "test_another_file_in_its_place_is_refused_and_not_touched test_a_link_that_leads_elsewhere_is_refused "
                  "test_an_older_or_another_state_of_the_study_is_refused test_what_other_processes_write_is_no_replacement "
                  "test_a_run_whose_database_is_replaced_ends_and_prints_the_result_that_it_holds"),
       (CRASH, "test_a_log_that_is_deleted_under_a_running_program_is_missed "
               "test_a_log_that_is_replaced_under_a_running_program_is_missed"),
       (CONNECTIONS, "test_a_file_that_was_replaced_gets_a_pool_of_its_own")),
    of("a4", "damage in the write-ahead log",
       (LOG, "test_the_log_of_a_killed_process_is_read test_a_flipped_byte_in_the_log_is_an_error "
             "test_many_flipped_bytes_in_the_log_are_errors test_a_log_that_was_cut_is_an_error "
             "test_a_log_that_was_deleted_is_an_error "
             "test_what_is_before_the_damage_can_be_used_after_the_command_in_the_error "
             "test_a_write_that_was_not_finished_when_the_process_was_killed_is_no_damage "
             "test_after_a_power_failure_damage_is_logged_and_the_log_is_kept test_a_log_in_use_is_no_damage "
             "test_after_a_merge_the_file_alone_is_whole test_at_the_end_of_a_run_the_file_alone_is_whole"),
       (DAMAGE, "test_an_older_state_of_one_trial_is_noticed")),
    of("a5", "a cost of zero", (RESULTS, "test_a_cost_of_zero_is_a_cost_and_keeps_the_value")),
    of("a6", "a worker suspended during its turn to ask",
       (ASK_LOCK, "test_a_suspended_holder_of_the_ask_lock_is_waited_for_once_and_not_longer_than_a_lease "
                  "test_the_ask_lock_is_exclusive_again_after_it_was_taken_over "
                  "test_a_study_with_a_short_lease_does_not_wait_for_a_suspended_worker_that_asks "
                  "test_a_thread_that_never_ends_its_turn_is_an_error_for_the_others "
                  "test_a_thread_that_never_returns_does_not_hold_up_the_others")),
    of("a7", "objectives that exit, kill the process or cannot be printed",
       (EXITS, "test_an_objective_that_exits_fails_its_trial_and_the_run_goes_on "
               "test_an_exit_on_a_pool_of_processes_is_a_failure_of_its_trial "
               "test_an_objective_that_always_exits_is_broken_and_the_error_says_what_to_do "
               "test_texts_with_characters_in_two_halves_are_stored "
               "test_an_objective_that_takes_the_output_away_leaves_its_worker_alive "
               "test_an_objective_that_cannot_be_loaded_says_why_even_if_its_error_has_no_text "
               "test_a_config_on_which_the_users_executor_breaks_is_not_asked_for_ever "
               "test_how_often_a_lost_worker_is_forgiven_is_the_users_to_say "
               "test_the_process_that_finds_a_worker_lost_knows_how_often_its_run_forgives_that"),
       (OUTAGE, "test_a_config_that_kills_every_process_that_evaluates_it_is_not_asked_for_ever")),
    of("a8", "a server that accepts connections and never answers",
       (SILENT, "test_one_interruption_ends_the_run_and_a_finished_result_gets_its_command "
                "test_a_second_interruption_drops_no_result test_an_interruption_ends_a_call_outside_of_a_run "
                "test_a_silent_server_is_an_error_that_says_so test_a_run_goes_on_when_a_silent_server_answers_again "
                "test_waiting_for_the_server_takes_no_processor_time"),
       (SIGNALS, "test_a_signal_does_not_wait_for_a_server_that_is_down"), storages=SERVER),
    of("a9", "a study loaded again and again",
       (CONNECTIONS, "test_a_study_that_is_loaded_again_and_again_uses_one_pool "
                     "test_closing_a_study_leaves_what_another_one_uses test_a_closed_study_opens_again_when_it_is_used "
                     "test_closing_a_study_leaves_a_storage_that_was_given_to_it test_a_closed_study_renews_no_lease "
                     "test_a_study_that_is_forgotten_closes_its_connections")),
    of("a10", "what a trial has started goes on",
       (TREE, "test_processes_are_found_by_their_mark_wherever_they_went "
              "test_a_process_that_was_asked_to_end_is_not_asked_again "
              "test_what_lost_its_parent_ends_after_the_trial_and_what_the_worker_holds_stays "
              "test_what_a_program_that_ended_well_has_left_behind_is_ended "
              "test_what_a_worker_has_left_behind_is_ended_with_it "
              "test_the_watchdog_ends_what_has_left_the_group_of_a_coordinator_that_was_killed"),
       (PROGRAM, "test_a_timeout_ends_the_program_and_its_child "
                 "test_when_the_coordinator_process_is_killed_its_programs_end_too"), storages=NO_STORAGE),
    of("a11", "clocks that are set, workers that cannot be seen",
       (LEASES, "test_a_clock_that_is_set_forward_gives_no_trial_of_a_living_worker_away "
                "test_a_clock_that_is_set_back_keeps_no_dead_worker_for_longer_than_two_leases "
                "test_a_lease_that_nobody_renews_lasts_as_long_as_it_says "
                "test_the_clock_of_a_file_is_not_the_time_of_day_that_somebody_sets "
                "test_the_clock_of_a_file_does_not_go_back_when_a_machine_boots_with_a_wrong_time"),
       (FOUND_ALIVE, "test_a_process_that_the_system_hides_is_not_dead "
                     "test_a_process_whose_files_may_not_be_read_is_not_dead")),
    of("a12", "a fork while another thread uses the study",
       (CONNECTIONS, "test_a_child_says_that_a_study_was_in_use_at_the_fork "
                     "test_a_child_says_that_a_study_in_memory_was_in_use_at_the_fork "
                     "test_a_child_can_use_a_study_that_another_thread_has_used_a_moment_before "
                     "test_a_child_says_that_a_file_was_in_use_at_the_fork "
                     "test_what_a_child_writes_survives_when_the_parent_closes_the_file "
                     "test_a_forked_worker_renews_no_lease_of_its_parent")),
    of("a13", "errors of 10 MB, sums and costs beyond all floats, damaged databases of others",
       (TEXTS, "test_a_long_text_keeps_its_beginning_and_its_end_and_says_how_long_it_was "
               "test_a_long_error_is_capped_however_it_enters_a_study "
               "test_what_is_no_number_is_said_in_short_and_without_raising "
               "test_costs_over_600_decades_end_no_run test_a_price_that_makes_the_charge_overflow_is_no_reason_to_fail "
               "test_a_path_that_cannot_be_one_is_a_clear_error"),
       (DAMAGE, "test_costs_whose_sum_is_too_large_are_no_damage"),
       (READER, "test_a_result_file_that_is_too_long_is_not_read_as_a_whole"),
       (CLI_MAIN, "test_names_that_are_too_long_are_an_error_without_a_traceback_and_take_no_time"),
       (OPTUNA, "test_a_damaged_database_is_an_error_and_never_a_raw_traceback test_a_torn_database_is_an_error")),
    of("a14", "a stranger's program in the database",
       (APPROVAL, "test_a_program_of_a_stranger_does_not_run test_a_database_from_elsewhere_runs_nothing "
                  "test_what_decides_which_code_runs_has_to_be_the_same "
                  "test_a_removed_and_remade_study_is_not_the_approved_one test_an_approval_is_the_users_alone "
                  "test_an_approval_that_cannot_be_stored_is_reported test_on_a_terminal_it_asks "
                  "test_a_study_from_before_there_were_identities_is_approved_once "
                  "test_a_plan_that_cannot_be_read_is_an_error"),
       (RUN, "test_a_program_that_only_the_database_names_needs_yes")),
    of("a15", "an option forged into the space",
       (APPROVAL, "test_an_option_that_is_forged_into_the_space_does_not_run "
                  "test_settings_outside_of_the_approved_space_do_not_reach_the_program")),
    of("a16", "passwords in odd addresses, and in a pickle",
       (ADDRESSES, "test_no_secret_of_an_address_is_printed test_a_secret_is_hidden_in_a_text_from_elsewhere_too "
                   "test_what_is_harmless_is_printed test_characters_of_a_password_need_no_quotes_but_for_the_at_sign "
                   "test_a_storage_is_printed_without_the_options_that_may_be_secret "
                   "test_a_pickle_of_a_storage_holds_no_password test_a_worker_process_of_a_run_gets_the_password "
                   "test_an_argument_of_a_new_process_carries_the_password "
                   "test_secrets_are_looked_for_in_a_long_text_without_delay"),
       (CLI_MAIN, "test_no_secret_of_an_address_is_printed")),
    of("a17", "files that others may read, cells that compute, forged entries of the queue",
       (ADDRESSES, "test_only_the_user_may_read_a_new_database_and_its_copies"),
       (APPROVAL, "test_only_the_user_may_read_what_a_run_writes"),
       (EXPORT, "test_a_text_that_a_spreadsheet_would_compute_is_escaped "
                "test_only_the_user_may_read_a_new_file_and_half_a_character_can_be_written"),
       (DAMAGE, "test_a_queued_config_that_cannot_be_read_is_left_out_and_the_study_goes_on "
                "test_a_queued_config_that_is_lost_is_logged_and_the_study_goes_on "
                "test_a_forged_config_in_the_queue_does_not_lock_the_study_for_good")),
    of("a18", "a replay on another processor",
       (REPLAY, "test_what_differs_by_rounding_alone_agrees_and_is_counted_apart test_replay_names_the_first_that_differs"),
       (SHOW, "test_replay")),
)  # fmt: skip
