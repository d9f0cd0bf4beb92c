//! Columns of a row: their positions by name, their values in the domain's types.

use orchestrix_core::{JobId, JobState, Json, Timestamp};
use rusqlite::{Row, types::FromSql};

use crate::{
    error::{Result, corrupt},
    row::{state, timestamp},
};

/// Declares the columns of one or more statements as a module of constants, each the position of one column.
///
/// Reading by position costs nothing, and the declaration gives each position its name once. It generates a test that
/// prepares the statements and compares their column names. A statement may omit trailing columns, not reorder them.
///
/// A statement that selects one column needs no declaration: its reader uses position 0.
macro_rules! columns {
    ($(#[$attribute:meta])* $visibility:vis mod $module:ident of $($statement:ident),+ { $($column:ident),+ $(,)? }) => {
        $(#[$attribute])*
        #[allow(non_upper_case_globals, reason = "named as in the SQL")]
        $visibility mod $module {
            #[allow(non_camel_case_types, reason = "named as in the SQL")]
            enum Position { $($column),+ }

            $(pub(crate) const $column: usize = Position::$column as usize;)+

            #[cfg(test)]
            #[test]
            fn every_statement_selects_the_declared_columns() {
                let declared = [$(stringify!($column)),+];
                $(crate::statement::tests::assert_columns(crate::statement::$statement, &declared);)+
            }
        }
    };
}

pub(crate) use columns;

/// Reads columns by position, in the domain's types.
pub(crate) struct Columns<'a>(pub(crate) &'a Row<'a>);

impl<'a> Columns<'a> {
    pub(crate) fn get<T: FromSql>(&self, column: usize) -> Result<T> {
        Ok(self.0.get(column)?)
    }

    pub(crate) fn text(&self, column: usize) -> Result<&'a str> {
        self.0.get_ref(column)?.as_str().map_err(|error| corrupt("text", error).into())
    }

    pub(crate) fn text_or_null(&self, column: usize) -> Result<Option<&'a str>> {
        self.0.get_ref(column)?.as_str_or_null().map_err(|error| corrupt("text", error).into())
    }

    pub(crate) fn id(&self, column: usize) -> Result<JobId> {
        self.get(column).map(JobId::from_uuid)
    }

    pub(crate) fn state(&self, column: usize) -> Result<JobState> {
        state(self.text(column)?)
    }

    pub(crate) fn time(&self, column: usize) -> Result<Timestamp> {
        timestamp(self.get(column)?)
    }

    pub(crate) fn time_or_null(&self, column: usize) -> Result<Option<Timestamp>> {
        self.get::<Option<i64>>(column)?.map(timestamp).transpose()
    }

    pub(crate) fn json_or_null(&self, column: usize) -> Result<Option<Json>> {
        Ok(self.text_or_null(column)?.map(Json::trusted))
    }
}
