"""Maps each kind of case to the function that answers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.cases import fairshare_kinds, queue_kinds, sum_kinds

Kind = Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]

KINDS: Mapping[str, Kind] = {
    "backfill_policy": queue_kinds.backfill_policy,
    "backfill_story": queue_kinds.backfill_story,
    "diagnose_p": sum_kinds.diagnose_p,
    "flux_fairshare_tree": fairshare_kinds.flux_tree,
    "flux_fairshare_tree_set": fairshare_kinds.flux_tree_set,
    "flux_priority": sum_kinds.flux_priority,
    "flux_usage": fairshare_kinds.flux_usage,
    "flux_usage_sequence": fairshare_kinds.flux_usage_sequence,
    "maui_fs_priority": sum_kinds.maui_fs_priority,
    "maui_fs_usage": fairshare_kinds.maui_fs_usage,
    "maui_misc": sum_kinds.maui_misc,
    "maui_params": sum_kinds.maui_params,
    "mdiag_f": fairshare_kinds.mdiag_f,
    "mdiag_p": sum_kinds.mdiag_p,
    "nci_su": sum_kinds.nci_su,
    "pbs_fairshare": fairshare_kinds.pbs,
    "pe": sum_kinds.pe,
    "slurm_classic": fairshare_kinds.slurm_classic,
    "slurm_fair_tree": fairshare_kinds.slurm_fair_tree,
    "slurm_misc": sum_kinds.slurm_misc,
    "xfactor": sum_kinds.xfactor,
}
