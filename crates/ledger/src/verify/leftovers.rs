//! Looks for what belongs to no crawl: rows, bodies, files.

use telusur_model::CrawlNo;

use super::{Checks, View};
use crate::storage::{Bodies, Rows, Storage, Table};
use crate::{StoreError, layout};

impl Checks {
    pub(super) fn leftovers<S: Storage>(&mut self, view: &View<'_, S>) -> Result<(), StoreError> {
        for table in Table::OF_CRAWL.into_iter().chain([Table::Stats]) {
            self.rows_of_nobody(view, table)?;
        }
        for row in view.rows.prefix(Table::Meta, layout::META_BODIES_ENDS) {
            let key = String::from_utf8_lossy(&row?.0).into_owned();
            let no = key.strip_prefix(layout::META_BODIES_ENDS).and_then(|no| no.parse().ok());
            let is_owned = match no {
                Some(no) => view.rows.contains(Table::Crawls, layout::crawl_key(CrawlNo(no)))?,
                None => false,
            };
            self.leftovers.look(is_owned, || format!("{key} belongs to no known crawl"));
        }
        self.bodies_of_nobody(view)?;
        for removal in view.store.all_removals()? {
            let what = if removal.is_deleted { "the index has it still" } else { "rows are left" };
            self.leftovers.notes.push(format!("{} is being removed; {what}", removal.crawl));
        }
        let leftovers = view.store.storage().leftovers()?;
        self.leftovers
            .look(leftovers.is_empty(), || format!("left over: {}", leftovers.join(", ")));
        Ok(())
    }

    /// Looks at the first row of each crawl, and goes on behind its last.
    fn rows_of_nobody<S: Storage>(
        &mut self,
        view: &View<'_, S>,
        table: Table,
    ) -> Result<(), StoreError> {
        let mut next = Some(Vec::new());
        while let Some(first) = next {
            let Some(row) = view.rows.range(table, first, None).next() else { break };
            let no = layout::owner_of(&row?.0)?;
            let is_owned = view.rows.contains(Table::Crawls, layout::crawl_key(no))?
                || view.rows.contains(Table::Meta, layout::meta_removal(no))?;
            self.leftovers.look(is_owned, || {
                format!("rows of {} belong to {no}, which is not known", table.name())
            });
            next = layout::after_crawl(no).map(Vec::from);
        }
        Ok(())
    }

    /// Bodies are listed as they are now, and so are the crawls that they are compared with.
    fn bodies_of_nobody<S: Storage>(&mut self, view: &View<'_, S>) -> Result<(), StoreError> {
        let bodies = view.store.bodies();
        for dir in bodies.crawls()? {
            let no = dir.strip_prefix("crawl_").and_then(|no| no.parse().ok()).map(CrawlNo);
            let is_owned = match no.filter(|no| no.to_string() == dir) {
                Some(no) => {
                    view.store.rows().contains(Table::Crawls, layout::crawl_key(no))?
                        || view.store.rows().contains(Table::Meta, layout::meta_removal(no))?
                }
                None => false,
            };
            // A crawl may be removed between the two looks: its bodies are set aside at once.
            let is_gone = || Ok::<_, StoreError>(!bodies.crawls()?.contains(&dir));
            let is_owned = is_owned || is_gone()?;
            self.leftovers.look(is_owned, || format!("bodies/{dir} belongs to no known crawl"));
        }
        for no in bodies.half_removed()? {
            let is_owned = view.store.rows().contains(Table::Meta, layout::meta_removal(no))?;
            // What says that it is being removed goes after its bodies.
            let is_owned = is_owned || !bodies.half_removed()?.contains(&no);
            self.leftovers.look(is_owned, || format!("bodies of {no}, which nobody removes"));
        }
        Ok(())
    }
}
