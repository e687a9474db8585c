"""The pipeline: batches prepared on the CPU, moved and computed at the same time."""

from umarray.pipeline.batch import Batch, WritableSlot
from umarray.pipeline.chunks import Chunks, chunks
from umarray.pipeline.pipeline import Pipeline
from umarray.pipeline.report import Report
from umarray.pipeline.structure import Spec

__all__ = ["Batch", "Chunks", "Pipeline", "Report", "Spec", "WritableSlot", "chunks"]
