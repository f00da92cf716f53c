"""Metrics: the recorder that a scheduler tells, the values that it is told, and metrics of plugins."""

from __future__ import annotations

from kschedfw.framework.metrics import (
    RECORDERS,
    AttemptResult,
    BatchAttempt,
    BatchFlush,
    CachedObject,
    DevicePreparation,
    EntityKind,
    HintResult,
    MeasuredPoint,
    MetricsRecorder,
    NoMetrics,
    OfferedRecorder,
    Operation,
    PluginSampling,
    VolumeStage,
)
from kschedfw.framework.plugin_metrics import Counter, Gauge, Histogram, MetricKind, PluginMetric

__all__ = [
    "AttemptResult",
    "BatchAttempt",
    "BatchFlush",
    "CachedObject",
    "Counter",
    "DevicePreparation",
    "EntityKind",
    "Gauge",
    "HintResult",
    "Histogram",
    "MeasuredPoint",
    "MetricKind",
    "MetricsRecorder",
    "NoMetrics",
    "OfferedRecorder",
    "Operation",
    "PluginMetric",
    "PluginSampling",
    "RECORDERS",
    "VolumeStage",
]
