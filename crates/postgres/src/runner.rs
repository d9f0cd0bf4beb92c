//! What runs a statement: the pool, a connection of the store in a transaction, or a caller's transaction.
//!
//! Enqueuing and finishing jobs is written once, against [`Runner`]. The types of parameters and values are few and
//! plain, so that other drivers can carry them too.

use std::fmt::Display;

use async_trait::async_trait;
use orchestrix_store::Result;
use tokio_postgres::{
    Row,
    row::RowIndex,
    types::{FromSqlOwned, ToSql},
};
use uuid::Uuid;

use crate::{
    database::{Connection, Database},
    row::corrupt,
    statement::Statement,
};

/// One parameter of a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Param<'a> {
    Int8(i64),
    Text(&'a str),
    Bools(&'a [bool]),
    Int2s(&'a [i16]),
    Int4s(&'a [i32]),
    Int8s(&'a [i64]),
    Uuids(&'a [Uuid]),
    MaybeUuids(&'a [Option<Uuid>]),
    Texts(&'a [&'a str]),
    MaybeTexts(&'a [Option<&'a str>]),
    MaybeStrings(&'a [Option<String>]),
}

impl Param<'_> {
    /// As a parameter of `tokio_postgres`.
    pub(crate) fn sql(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Int8(value) => value,
            Self::Text(value) => value,
            Self::Bools(values) => values,
            Self::Int2s(values) => values,
            Self::Int4s(values) => values,
            Self::Int8s(values) => values,
            Self::Uuids(values) => values,
            Self::MaybeUuids(values) => values,
            Self::Texts(values) => values,
            Self::MaybeTexts(values) => values,
            Self::MaybeStrings(values) => values,
        }
    }

    /// As parameters of `tokio_postgres`.
    pub(crate) fn all<'p>(params: &'p [Param<'_>]) -> Vec<&'p (dyn ToSql + Sync)> {
        params.iter().map(Param::sql).collect()
    }
}

/// A value that every driver can read from a column.
#[cfg(not(feature = "sqlx"))]
pub(crate) trait Value: FromSqlOwned {}
#[cfg(not(feature = "sqlx"))]
impl<T: FromSqlOwned> Value for T {}

/// A value that every driver can read from a column.
#[cfg(feature = "sqlx")]
pub(crate) trait Value:
    FromSqlOwned + for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>
{
}
#[cfg(feature = "sqlx")]
impl<T: FromSqlOwned + for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>> Value for T {}

/// The name or position of a column, for every driver.
#[cfg(not(feature = "sqlx"))]
pub(crate) trait ColumnIndex: RowIndex + Display {}
#[cfg(not(feature = "sqlx"))]
impl<T: RowIndex + Display> ColumnIndex for T {}

/// The name or position of a column, for every driver.
#[cfg(feature = "sqlx")]
pub(crate) trait ColumnIndex: RowIndex + Display + sqlx::ColumnIndex<sqlx::postgres::PgRow> {}
#[cfg(feature = "sqlx")]
impl<T: RowIndex + Display + sqlx::ColumnIndex<sqlx::postgres::PgRow>> ColumnIndex for T {}

/// A row of any driver.
pub(crate) enum AnyRow {
    Tokio(Row),
    #[cfg(feature = "sqlx")]
    Sqlx(sqlx::postgres::PgRow),
}

impl AnyRow {
    pub(crate) fn get<T: Value>(&self, column: impl ColumnIndex) -> Result<T> {
        match self {
            Self::Tokio(row) => row.try_get(column).map_err(|error| corrupt("a row", error)),
            #[cfg(feature = "sqlx")]
            Self::Sqlx(row) => sqlx::Row::try_get(row, column).map_err(|error| corrupt("a row", error)),
        }
    }
}

/// Runs statements one after the other.
#[async_trait]
pub(crate) trait Runner: Send {
    async fn run(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<AnyRow>>;
}

/// Every statement is a transaction of its own.
#[async_trait]
impl Runner for &Database {
    async fn run(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<AnyRow>> {
        Ok(self.query(statement, &Param::all(params)).await?.into_iter().map(AnyRow::Tokio).collect())
    }
}

#[async_trait]
impl Runner for &Connection<'_> {
    async fn run(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<AnyRow>> {
        Ok(self.query(statement, &Param::all(params)).await?.into_iter().map(AnyRow::Tokio).collect())
    }
}

/// As arguments of `sqlx`.
#[cfg(feature = "sqlx")]
pub(crate) fn sqlx_arguments(params: &[Param<'_>]) -> Result<sqlx::postgres::PgArguments> {
    use sqlx::Arguments;
    let mut arguments = sqlx::postgres::PgArguments::default();
    for param in params {
        match *param {
            Param::Int8(value) => arguments.add(value),
            Param::Text(value) => arguments.add(value),
            Param::Bools(values) => arguments.add(values),
            Param::Int2s(values) => arguments.add(values),
            Param::Int4s(values) => arguments.add(values),
            Param::Int8s(values) => arguments.add(values),
            Param::Uuids(values) => arguments.add(values),
            Param::MaybeUuids(values) => arguments.add(values),
            Param::Texts(values) => arguments.add(values),
            Param::MaybeTexts(values) => arguments.add(values),
            Param::MaybeStrings(values) => arguments.add(values),
        }
        .map_err(orchestrix_store::StoreError::Backend)?;
    }
    Ok(arguments)
}
