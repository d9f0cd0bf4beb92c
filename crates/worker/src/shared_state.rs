//! Values that all handlers of a worker share, looked up by type.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::Arc,
};

/// At most one value of each type.
#[derive(Clone, Default)]
pub(crate) struct SharedState(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl SharedState {
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}
