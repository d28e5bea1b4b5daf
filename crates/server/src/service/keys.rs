//! Keys and metrics: what only operators ask for.

use std::time::Duration;

use telusur_model::CrawlState;

use super::Service;
use crate::access::{KeyRingError, Scope, StoredKey};
use crate::json::{KeyBody, KeyView, NewKeyView};
use crate::metrics::Live;
use crate::problem::{Code, Problem, shown};

/// Ten years. Who wants longer wants for ever, and can have it.
const DAYS_MAX: u32 = 3660;
const DAY: Duration = Duration::from_secs(86_400);

impl Service {
    /// All keys, the oldest first.
    pub fn keys(&self) -> Vec<KeyView> {
        self.inner().keys.list().into_iter().map(key_view).collect()
    }

    /// Makes a key.
    pub async fn create_key(&self, body: KeyBody) -> Result<NewKeyView, Problem> {
        self.check_writable()?;
        let mut scopes = Vec::new();
        for (number, word) in body.scopes.iter().enumerate() {
            let scope = Scope::from_word(word).ok_or_else(|| {
                let what = format!("{:?} is no scope", shown(word));
                Problem::field(&format!("/scopes/{number}"), what)
                    .hint("Write search, read, crawl, metrics or admin")
            })?;
            scopes.push(scope);
        }
        if body.expires_in_days.is_some_and(|days| !(1..=DAYS_MAX).contains(&days)) {
            return Err(Problem::field("/expires_in_days", format!("write 1 to {DAYS_MAX}")));
        }
        let work = move |service: &Self| {
            let now = service.inner().clock.wall();
            let expires_at = body.expires_in_days.map(|days| now.plus(DAY * days));
            let made = service.inner().keys.create(&body.name, &scopes, now, expires_at);
            let (key, stored) = made.map_err(|error| key_problem(&error))?;
            tracing::info!(id = stored.id, "key made");
            Ok(NewKeyView { key, about: key_view(stored) })
        };
        self.carry_through(|service| async move { service.work(work).await }).await
    }

    /// Revokes a key. Also where nothing else may be changed: a door can always be closed.
    pub async fn revoke_key(&self, id: String) -> Result<(), Problem> {
        let work = move |service: &Self| {
            let revoked = service.inner().keys.revoke(&id);
            if !revoked.map_err(|error| key_problem(&error))? {
                let what = format!("there is no key {:?}", shown(&id));
                return Err(Problem::new(Code::NotFound, what));
            }
            tracing::info!(id, "key revoked");
            Ok(())
        };
        self.carry_through(|service| async move { service.work(work).await }).await
    }

    /// Everything that is counted, for Prometheus.
    pub async fn metrics_text(&self) -> Result<String, Problem> {
        let totals = self.totals().await?;
        Ok(self.inner().metrics.text(&totals, &self.live()))
    }

    fn live(&self) -> Live {
        let mut live = Live::default();
        let snapshots = self.inner().engine.progress();
        let snapshots = snapshots.borrow();
        for snapshot in snapshots.values().filter(|it| it.state == CrawlState::Running) {
            live.in_flight += snapshot.in_flight;
            let lowest = live.fairness_index.unwrap_or(1.0).min(snapshot.fairness_index);
            live.fairness_index = Some(lowest);
            for (status, count) in &snapshot.stats.statuses {
                *live.fetches.entry(format!("{}xx", status / 100)).or_default() += count;
            }
            for (reason, count) in &snapshot.stats.skips {
                *live.skips.entry(reason.word().to_owned()).or_default() += count;
            }
        }
        live
    }
}

fn key_view(key: StoredKey) -> KeyView {
    KeyView {
        id: key.id,
        name: key.name,
        scopes: key.scopes.iter().map(|scope| scope.word().to_owned()).collect(),
        created_at: key.created_at.rfc3339(),
        expires_at: key.expires_at.map(|at| at.rfc3339()),
    }
}

fn key_problem(error: &KeyRingError) -> Problem {
    match error {
        KeyRingError::Refused(what) => Problem::new(Code::InvalidField, what),
        KeyRingError::Io { .. } | KeyRingError::Damaged { .. } => {
            tracing::error!(%error, "the keys cannot be changed");
            Problem::new(Code::Internal, "the keys cannot be read or written")
        }
    }
}
