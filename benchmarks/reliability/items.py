"""The 32 known ways in which software of this kind fails, and the tests that stand for each.

A test is named without its parameters: which storages it has is found out when it is run. Each item has tests for SQLite and for
PostgreSQL, but those of which it makes no difference where the study is kept. Items without enough of a long form among the tests
have a drill as well, in ``drills``. What was found later is in ``attacks``.
"""

from dataclasses import dataclass

CROWD, DAMAGE, FAILURES = "tests/storage/test_processes.py", "tests/storage/test_damage.py", "tests/storage/test_failures.py"
SCHEMA, TEXT, LEASES, SIZE = (f"tests/storage/test_{name}.py" for name in ("schema", "text", "leases", "size"))
WORKERS, THREADS = (f"tests/execution/test_{name}.py" for name in ("process_pool", "threads"))
DASK, RAY = (f"tests/execution/test_{name}.py" for name in ("dask_executor", "ray_executor"))
SIGNALS, OUTAGE, CLI = "tests/execution/test_interruption.py", "tests/execution/test_outage.py", "tests/cli/test_interruption.py"
RUN, LARGE = "tests/cli/test_run.py", "tests/benchmarks/test_reliability.py"
PERSISTENCE, REOPENED, REPLAY = (f"tests/state/test_{name}.py" for name in ("persistence", "reopened_studies", "replay"))
RESUME, CONCURRENT = (f"tests/state/test_{name}.py" for name in ("resume", "concurrent_processes"))
EXTEND, ROBUST = "tests/space/test_extend.py", "tests/search/test_robustness.py"
DROPPED = "tests/execution/test_dropped_connections.py"
ADDRESSES, OPENING = (f"tests/storage/test_{name}.py" for name in ("addresses", "opening"))
MAIN, SERVED, USAGE, ASK_TELL = (f"tests/cli/test_{name}.py" for name in ("main", "postgres", "usage", "ask_tell"))
OPTUNA = "tests/cli/test_import_optuna.py"
SECURITY, BROWSER = (f"tests/web/test_{name}.py" for name in ("security", "browser"))
NETWORK = "tests/architecture/test_no_network.py"
BOTH, FILE, SERVER, NO_STORAGE = ("sqlite", "postgresql"), ("sqlite",), ("postgresql",), ()


@dataclass(frozen=True)
class Item:
    """A way to fail. ``storages`` are those that it can happen on; without tests, ``note`` says why, or it is a drill."""

    number: int | str
    what: str
    tests: tuple[str, ...]
    storages: tuple[str, ...] = BOTH
    note: str = ""


def of(number: int | str, what: str, *tests: tuple[str, str], storages: tuple[str, ...] = BOTH, note: str = "") -> Item:
    """``tests``: a file, and names of tests in it."""
    return Item(number, what, tuple(f"{file}::{name}" for file, names in tests for name in names.split()), storages, note)


ITEMS = (
    of(1, "32 processes open a fresh database together",
       (CROWD, "test_a_crowd_opens_a_new_database test_a_large_crowd_opens_a_new_database")),
    of(2, "16 writers, a slow reader and an open page",
       (CROWD, "test_writers_do_not_wait_for_a_slow_reader test_many_writers_do_not_wait_for_a_slow_reader")),
    of(3, "kill -9 right after tell, 200 times",
       (CROWD, "test_what_was_told_survives_a_kill test_what_was_told_survives_two_hundred_kills")),
    of(4, "truncated files and flipped bytes",
       (DAMAGE, "test_a_truncated_file_is_an_error test_flipped_bytes_are_an_error_or_do_no_harm "
                "test_many_truncated_and_flipped_files "
                "test_a_file_that_is_no_database_is_an_error test_a_missing_trial_is_noticed test_a_changed_value_is_noticed "
                "test_sums_that_are_wrong_are_found")),
    of(5, "32 processes ask 1,000 trials",
       (CROWD, "test_each_number_is_given_once_and_the_budget_is_kept "
               "test_each_of_many_numbers_is_given_once_and_the_budget_is_kept")),
    of(6, "200 enqueued trials, 32 workers",
       (CROWD, "test_each_waiting_config_runs_once test_each_of_many_waiting_configs_runs_once"),
       (PERSISTENCE, "test_what_is_enqueued_here_is_asked_there_once")),
    of(7, "a connection dropped, the answer to COMMIT lost",
       (FAILURES, "test_nothing_is_written_twice test_a_queued_trial_is_taken_once_when_the_answer_is_lost "
                  "test_what_waits_is_not_doubled_when_somebody_takes_it_before_the_second_try "
                  "test_a_connection_that_the_server_ends_is_replaced test_a_server_that_restarts_is_waited_for"),
       (DROPPED, "test_a_result_is_there_once_when_connections_break test_a_long_trial_outlives_its_connections "
                 "test_a_very_long_trial_outlives_its_connections "
                 "test_a_server_that_restarts_during_a_trial_is_waited_for"),
       (OUTAGE, "test_results_are_held_until_the_storage_answers "
                "test_a_server_that_is_down_for_longer_than_a_transaction_waits")),
    of(8, "100,000 trials; times and memory are in the part throughput",
       (SIZE, "test_the_number_of_statements_does_not_grow test_every_search_goes_by_an_index test_a_large_study "
              "test_a_very_large_study"),
       (LARGE, "test_a_large_study_is_a_study test_a_study_of_a_hundred_thousand_trials")),
    of(9, "older and newer schemas",
       (SCHEMA, "test_older_tables_are_brought_up_to_date test_a_copy_of_the_older_file_is_kept "
                "test_an_older_copy_is_not_overwritten test_a_step_that_fails_changes_nothing test_a_crowd_upgrades_once "
                "test_newer_tables_are_refused_and_left_alone")),
    of(10, "odd values, texts and names",
       (TEXT, "test_any_trial_comes_back test_odd_texts_come_back_from_every_storage "
              "test_numbers_come_back_exactly_from_every_storage "
              "test_numpy_scalars_are_stored_as_numbers test_what_json_cannot_hold_is_refused "
              "test_names_that_a_database_cannot_hold_are_refused test_other_names_are_fine")),
    of(11, "a full disk, a read-only file, no folder",
       (FAILURES, "test_a_read_only_file_is_an_error_and_can_be_used_later test_a_disk_that_is_full_loses_nothing "
                  "test_a_database_that_may_not_grow_loses_nothing "
                  "test_a_server_that_only_lets_one_read_is_an_error_and_can_be_used_later "
                  "test_a_server_whose_disk_is_full_loses_nothing"),
       (PERSISTENCE, "test_a_study_in_a_folder_that_is_not_there")),
    of(12, "clocks that differ, a change to summer time",
       (LEASES, "test_no_lease_ends_early_because_clocks_differ test_the_clock_is_that_of_the_machine_in_seconds"),
       (CONCURRENT, "test_clocks_that_differ_take_no_trial_from_anybody")),
    of(13, "a killed worker's trial comes back",
       (LEASES, "test_the_trial_of_a_killed_worker_comes_back"),
       (PERSISTENCE, "test_the_trial_of_a_worker_that_is_gone_comes_back test_a_living_worker_keeps_its_trial"),
       (CONCURRENT, "test_what_a_killed_process_had_asked_is_asked_again_within_a_lease "
                    "test_a_killed_worker_leaves_its_trial_to_others test_what_a_killed_worker_had_reported_is_kept")),
    of(14, "a worker suspended past its lease",
       (LEASES, "test_the_result_of_a_suspended_worker_is_kept_once_and_both_are_charged"),
       (PERSISTENCE, "test_a_late_result_is_kept_and_both_costs_are_charged"),
       (CONCURRENT, "test_a_worker_that_is_suspended_past_its_lease_goes_on_and_both_costs_are_charged")),
    of(15, "16 workers, 100 trials: exactly 100; a budget in cost",
       (CROWD, "test_a_cost_budget_is_overshot_by_no_more_than_what_was_in_flight"),
       (PERSISTENCE, "test_a_budget_is_that_of_the_study_not_of_the_process"),
       (CONCURRENT, "test_a_budget_is_shared_by_several_processes test_a_budget_is_shared_by_sixteen_processes"),
       (THREADS, "test_the_budget_of_trials_is_exact_and_failures_are_recorded "
                 "test_a_budget_in_cost_is_not_overshot_by_more_than_what_ran")),
    of(16, "Ctrl-C and SIGTERM at any moment",
       (CLI, "test_ctrl_c_ends_all_programs_and_prints_how_to_continue test_ctrl_c_at_any_moment "
             "test_ctrl_c_before_the_first_trial_says_what_works "
             "test_the_printed_command_names_the_storage "
             "test_sigterm_does_the_same_and_a_program_that_ignores_it_is_killed"),
       (SIGNALS, "test_a_signal_ends_it_at_once_and_gives_the_trials_back "
                 "test_with_one_worker_sigterm_ends_the_process_too_once_all_is_saved "
                 "test_workers_and_what_they_have_started_end_with_a_coordinator_that_is_killed "
                 "test_a_signal_does_not_wait_for_a_server_that_is_down"),
       (OUTAGE, "test_an_interruption_does_not_wait_for_the_storage")),
    of(17, "a hung objective",
       (WORKERS, "test_a_hung_objective_is_killed_at_its_timeout_with_all_that_it_has_started"), (DASK, "test_timeouts_on_dask"),
       (RAY, "test_timeouts_on_ray"), storages=NO_STORAGE),
    of(18, "a worker out of memory or killed",
       (WORKERS, "test_a_crash_or_a_kill_takes_its_own_trial_alone test_a_worker_that_dies_between_trials_costs_none "
                 "test_workers_that_are_killed_at_random_cost_their_trials_alone"), storages=NO_STORAGE),
    of(19, "engines that rerun or cache",
       (DASK, "test_an_objective_that_kills_its_process_runs_once_and_once_for_each_retry "
              "test_an_objective_that_kills_the_worker_of_dask_itself_runs_once_too "
              "test_the_same_config_three_times_gives_three_results"),
       (RAY, "test_an_objective_that_kills_its_process_runs_once_and_once_for_each_retry "
             "test_the_same_config_three_times_gives_three_results"), storages=NO_STORAGE),
    of(20, "what is no result", (WORKERS, "test_what_is_no_result_fails_its_trial_and_the_study_goes_on"), storages=NO_STORAGE),
    of(21, "resumed in a new process, bit for bit",
       (PERSISTENCE, "test_the_trials_are_those_of_a_study_in_memory_however_it_is_divided "
                     "test_another_process_goes_on_as_this_one_would_have"),
       (REPLAY, "test_every_suggestion_comes_out_the_same_again"),
       (RUN, "test_a_resumed_study_makes_the_same_suggestions_as_an_uninterrupted_one"),
       (RESUME, "test_in_a_new_process_the_next_suggestions_are_the_same_to_the_last_bit "
                "test_after_ctrl_c_it_goes_on_as_if_nothing_had_happened")),
    of(22, "the same name with another space",
       (REOPENED, "test_another_space_is_refused_and_nothing_is_lost test_a_space_can_be_widened_and_old_trials_stay_in_use "
                  "test_a_space_cannot_be_narrowed test_the_order_of_parameters_does_not_make_another_space"),
       (EXTEND, "test_a_space_that_does_not_contain_the_other_is_refused test_many_processes_that_extend_it_in_all_directions"),
       (RUN, "test_the_same_name_with_another_space_is_rejected_and_nothing_is_lost")),
    of(23, "standard input closed",
       (WORKERS, "test_nothing_ever_waits_for_an_answer_and_what_is_printed_is_seen"), storages=NO_STORAGE),
    of(24, "64 asks at once in a space of 27",
       (ROBUST, "test_sixty_four_asks_at_once_in_a_space_of_twenty_seven test_no_duplicate_when_some_are_finished_and_others_run "
                "test_an_exhausted_space_ends_the_study_and_says_so"),
       (CONCURRENT, "test_sixty_four_asks_at_once_in_a_space_of_twenty_seven"),
       (PERSISTENCE, "test_more_at_once_than_there_are_gives_those_that_there_are"),
       (THREADS, "test_in_a_finite_space_nothing_is_asked_twice_and_the_end_is_said")),
    of(25, "NaN, inf, constants, 1e300, near-duplicates",
       (ROBUST, "test_a_third_of_nan_and_a_twentieth_of_inf test_a_constant_objective test_one_huge_value_does_not_ruin_a_study "
                "test_five_hundred_near_duplicates test_values_over_many_orders_of_magnitude"),
       (REOPENED, "test_odd_values_are_found_again_and_lead_to_the_same_suggestion")),
    of(26, "no jump in the time of a suggestion at 50, 500 and 5,000 observations", storages=NO_STORAGE),
    of(27, "pickles and code in every cell of the database",
       (DAMAGE, "test_a_bomb_in_any_cell_never_runs test_no_other_bomb_runs_either test_no_bomb_in_a_cell_of_a_server_runs"),
       (OPTUNA, "test_a_bomb_in_a_cell_does_not_run test_neither_optuna_nor_pickle_is_needed")),
    of(28, "SQL in names and in every argument of a query",
       (DAMAGE, "test_nothing_that_is_given_becomes_a_statement"), (ASK_TELL, "test_any_name_is_only_a_name")),
    of(29, "the page without its token, from other hosts and origins",
       (SECURITY, "test_every_route_is_refused_without_a_key test_a_wrong_key_opens_nothing test_a_foreign_host_is_400 "
                  "test_a_foreign_origin_is_403 test_an_action_without_its_csrf_token_is_403 test_no_key_is_ever_in_a_log "
                  "test_a_read_only_link_shows_everything_and_changes_nothing"), storages=NO_STORAGE),
    of(30, "scripts stored in names, shown on the page",
       (BROWSER, "test_a_stored_script_never_runs"),
       (SECURITY, "test_a_stored_script_is_shown_as_text test_every_answer_has_the_strict_headers "
                  "test_no_page_has_a_script_or_a_style_in_it test_a_path_that_leads_elsewhere_is_404"), storages=NO_STORAGE),
    of(31, "a password in the address of the database",
       (ADDRESSES, "test_no_secret_of_an_address_is_printed test_a_secret_is_hidden_in_a_text_from_elsewhere_too "
                   "test_a_storage_is_printed_without_the_options_that_may_be_secret"),
       (OPENING, "test_a_password_is_shown_nowhere"), (SERVED, "test_a_password_is_never_printed_or_stored"),
       (MAIN, "test_an_unexpected_error_is_shown_without_passwords test_no_secret_of_an_address_is_printed "
              "test_a_password_appears_nowhere"),
       (USAGE, "test_passwords_are_hidden_in_these_errors_too")),
    of(32, "no network call but to the given database",
       (NETWORK, "test_a_study_reaches_nothing_over_the_network "
                 "test_nothing_is_reached_over_the_network_but_the_given_database")),
)  # fmt: skip
