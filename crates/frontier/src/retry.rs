//! Which visits are asked again, and when. Pure functions of the outcome.

use telusur_model::{FetchOutcome, Fetched, Politeness, Retry, UrlKey, Visit};

use crate::decision::Disposition;
use crate::pace::{HostSignal, Pace};

const BACK_OFF_MS_MIN: u64 = 2_000;
/// Ten minutes, together with the jitter.
const BACK_OFF_MS_MAX: u64 = 480_000;
/// After trouble on our own machine.
const LOCAL_TROUBLE_MS: u64 = 1_000;
/// Runs of 429 are not counted as attempts up to this many times the attempts.
const THROTTLED_RUN_FACTOR: u32 = 5;

/// What becomes of a visit. `attempt`: which one it is; `is_excused`: the host had gone to rest before
/// this visit ended, or no host at all answers; `pace`: what is known of it now, this outcome included.
pub(crate) fn disposition(
    visit: &Visit,
    attempt: u8,
    fetched: &Fetched,
    politeness: &Politeness,
    pace: &Pace,
    is_excused: bool,
) -> Disposition {
    let again = |counted| {
        let retry_after_ms = match HostSignal::of(fetched) {
            HostSignal::Throttled { retry_after_ms } if politeness.adaptive => retry_after_ms,
            _ => None,
        };
        let after_ms = back_off_ms(attempt, visit.key).max(retry_after_ms.unwrap_or(0));
        Disposition::Retry { after_ms, counted }
    };
    let attempts_left = attempt < politeness.attempts_max;
    match &fetched.outcome {
        FetchOutcome::Failed { retry: Retry::NotCounted, .. } => {
            Disposition::Retry { after_ms: LOCAL_TROUBLE_MS, counted: false }
        }
        FetchOutcome::Failed { retry: Retry::Later, .. } => {
            if is_excused {
                // It fell together with others, for a cause that is not its own.
                again(false)
            } else if attempts_left && !pace.is_given_up() {
                again(true)
            } else {
                Disposition::Settle
            }
        }
        FetchOutcome::Page(page) => match page.status {
            // 429 is no failure of the page: we were rude. It is counted only once the host has
            // said nothing else for a long time, because a site that says 429 for ever must end.
            // Any other answer resets the run, and settles a URL: there are finitely many.
            429 if pace.throttled_run()
                <= THROTTLED_RUN_FACTOR * u32::from(politeness.attempts_max) =>
            {
                again(false)
            }
            408 | 425 | 429 | 500 | 502 | 503 | 504 if attempts_left => again(true),
            _ => Disposition::Settle,
        },
        FetchOutcome::Failed { retry: Retry::Never, .. }
        | FetchOutcome::Refused { .. }
        | FetchOutcome::Redirected { .. }
        | FetchOutcome::NotModified => Disposition::Settle,
    }
}

/// Four times longer at each attempt, and up to a quarter more, by the URL: pages that failed
/// together do not come back together.
fn back_off_ms(attempt: u8, key: UrlKey) -> u64 {
    let doublings = 2 * u32::from(attempt.saturating_sub(1)).min(16);
    let base_ms = (BACK_OFF_MS_MIN << doublings).min(BACK_OFF_MS_MAX);
    let jitter_ms = key.0 % u128::from(base_ms / 4 + 1);
    base_ms + u64::try_from(jitter_ms).expect("less than a quarter of a u64")
}
