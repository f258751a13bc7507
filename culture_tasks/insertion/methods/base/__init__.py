"""The plain model: what every method is compared with."""

from culture_tasks.insertion.methods.base.method import BaseModelMethod

METHOD = BaseModelMethod
