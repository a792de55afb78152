// Types of the API's answers, made by .ci/generate.py from the operations' declarations.

export type Ailment = { "cause": string; "summary": string; "evidence": (string)[]; "advice": (string)[]; "name": string; "since": string | null; };
export type AliasAnswer = { "alias": string; "version": number; "value": number | null; "at": string; "by": string; "by_id": string; "why": string; "earlier": (number)[]; };
export type AllocationCode = "capacity" | "other" | "quota";
export type AllocationError = { "words": string; "code": AllocationCode; "family": string; "used": number | null; "limit": number | null; };
export type Artifact = { "name": string; "size": number; "md5": string; "etag": string; };
export type Artifacts = { "complete": boolean; "files": (Artifact)[]; "outputs": (OutputAnswer)[]; "pictures": Record<string, string>; };
export type AttestationAnswer = { "file": string; "kind": string; "passed": boolean; "says": string; "at": string; "by": string; "by_id": string; "signer": string; "predicate": string; "of_app": boolean; "problem": string; };
export type AuditedAnswer = { "what": string; "by": string; "by_id": string; "at": string; "deed": string; };
export type Best = { "metric": string; "value": number; "step": number | null; "of_model": number; "by": string; };
export type BudgetState = { "project": string; "month": number | null; "run": number | null; "spent": number; "kept_back": number; "reached_at": string | null; };
export type CancelCode = "" | "budget" | "hang" | "idle_gpus" | "moved" | "other" | "person" | "schedule" | "sweep" | "time_limit";
export type CardAnswer = { "of": string; "generation": string; "verdict": CheckVerdict; "refusals": (string)[]; "warnings": (string)[]; "notes": (string)[]; "card": Record<string, any>; };
export type CardChanges = { "a": string; "b": string; "changes": (string)[]; };
export type CatchUp = "all" | "latest" | "skip";
export type Cause = "argument_error" | "checkpoint_mismatch" | "corrupt_file" | "cuda_oom" | "data_not_found" | "dataloader_worker" | "deadlock" | "disk_full" | "diverging" | "env_build" | "gpu_driver_or_arch" | "healthy" | "host_oom" | "input_bound" | "label_out_of_range" | "missing_module" | "nan_loss" | "nccl_timeout" | "network" | "not_known" | "permission" | "preemption" | "quota_or_capacity" | "rank_first_failed" | "rendezvous_or_reset" | "shape_mismatch" | "shm_bus_error" | "straggler" | "time_limit" | "user_exception";
export type Certainty = "certain" | "likely" | "none";
export type Chain = { "version": VersionAnswer; "links": (Link)[]; "holds": boolean; };
export type ChangeAnswer = { "order": number; "what": ChangeKind; "at": string; "alias": string; "before": number; "after": number; "by": string; "by_id": string; "why": string; "run": string; };
export type ChangeKind = "alias" | "let go" | "lost" | "signed" | "undo" | "version";
export type Channel = "mail" | "slack" | "teams" | "webhook";
export type Check = { "ok": boolean; "detail": string; };
export type CheckVerdict = "fine" | "refused" | "warned";
export type ClusterAnswer = { "name": string; "min_nodes": number; "max_nodes": number; "idle_seconds": number; "nodes": number; "busy_nodes": number; "tier": string; "vm_size": string; "target_nodes": number; "running_nodes": number; "idle_nodes": number; "preparing_nodes": number; "leaving_nodes": number; "unusable_nodes": number; "allocation": string; "allocation_since": string | null; "errors": (AllocationError)[]; "kind": string; "pin": string; "project": string; "idle_auto": boolean; "decision": DecisionAnswer | null; "waiting": (WaitingRun)[]; "waiting_runs": number; };
export type ClusterNodes = { "cluster": string; "samples": (NodeSample)[]; "decisions": (DecisionAnswer)[]; };
export type Compared = { "runs": (RunAnswer)[]; "different": (ComparedValue)[]; "metrics": (ComparedMetric)[]; };
export type ComparedMetric = { "name": string; "values": (number | null)[]; "best": number | null; };
export type ComparedValue = { "name": string; "values": (any)[]; };
export type ComparisonAnswer = { "equal": boolean; "weights": Record<string, boolean>; "others": (string)[]; "differs": (string)[]; "metric": string; "value": number | null; "repetitions": Record<string, number>; "within": boolean | null; "run": string; };
export type CompletedToday = { "run": string; "at": string; "metric": string | null; "value": number | null; "champion": Rival | null; "before": Rival | null; };
export type CostAnswer = { "training": number; "allocation": number; "idle": number; "node_seconds": number; "at": string; "unpriced": boolean; };
export type CostDay = { "day": string; "training": number; "allocation": number; "idle": number; "lease": number; "unexplained": number; };
export type CostGap = { "day": string; "cluster": string; "why": string; "advice": string; };
export type CostLine = { "key": string; "name": string; "spent": number; "training": number; "allocation": number; "idle": number; "lease": number; "unexplained": number; "idle_share": number; "node_hours": number; "unpriced_hours": number; "unknown_hours": number; "saved_always_on": number | null; "saved_default": number | null; };
export type CostReport = { "since": string; "until": string; "by": string; "total": CostLine; "lines": (CostLine)[]; "days": (CostDay)[]; "standing": Record<string, number>; "budgets": (BudgetState)[]; "missing": (CostGap)[]; };
export type Curves = { "runs": Record<string, Record<string, ((number | null)[])[]>>; "records": (RunAnswer)[]; };
export type DataCheckAnswer = { "verdict": CheckVerdict; "refusals": (string)[]; "warnings": (string)[]; "notes": (string)[]; "card": Record<string, any>; "generation": string; };
export type DataFileAnswer = { "path": string; "size": number; "content": string; };
export type DateAnswer = { "done_by": string; "takes_seconds": number; "low_cluster": string; "further_low_clusters": (string)[]; "dedicated_cluster": string; "low_price": number; "dedicated_price": number; "change_seconds": number; "cost_at_best": number; "cost_at_worst": number; "cost_expected": number; "done_share": number; "line_share": number; "holds": NodeChoice | null; "holds_why": string; "expected_done_at": string | null; "paced_at": string | null; "late_since": string | null; "change_measured": number; "pause_measured": number; "lost_seconds": number; };
export type DecisionAnswer = { "action": string; "code": string; "why": string; "at": string; "idle_since": string | null; "min_nodes": number | null; "replaces": number; "findings": (string)[]; "of_runs": (string)[]; "dry_run": boolean; "asked_by": string; "asked_by_id": string; };
export type DeedAnswer = { "at": string; "by": string; "by_id": string; "what": string; };
export type DeliveryAnswer = { "event": string; "kind": NoticeKind; "title": string; "at": string; "state": DeliveryState; "tries": number; "next_at": string | null; "done_at": string | null; "error": string; };
export type DeliveryState = "delivered" | "gave_up" | "pending";
export type Diagnosis = { "cause": Cause; "certainty": Certainty; "summary": string; "evidence": (QuotedLine)[]; "where": string | null; "rank": number | null; "advice": (string)[]; "change": Record<string, number>; "change_job": Record<string, number | string>; };
export type Diff = { "a": string; "b": string; "added": FilesPart; "changed": FilesPart; "gone": FilesPart; "same": number; };
export type DropAnswer = { "state": DropState; "opened_at": string; "generation": number; "fingerprint": string; "run": string; "blobs": number; "bytes": number; "sealed_at": string | null; "why": string; "code": string; "owner": string; "removed_at": string | null; "files": number | null; "event_form": string; "drop": string; };
export type DropState = "broken" | "open" | "rejected" | "sealed" | "sealing";
export type ElasticAnswer = { "min_nodes": number; "resubmitted": number; "resubmissions": number; "deadline": string; "members": (MemberAnswer)[]; "sizes": (SizeAnswer)[]; "losses": (LossAnswer)[]; };
export type FileAddress = { "url": string; "seconds": number; };
export type FilesAnswer = { "of": string; "count": number; "bytes": number; "files": (DataFileAnswer)[]; };
export type FilesPart = { "count": number; "bytes": number; "files": (DataFileAnswer)[]; };
export type FiringAnswer = { "at": string; "decided_at": string; "outcome": Outcome; "run": string; "why": string; "facts": Record<string, any>; };
export type FoundName = { "run": string; "drop": string; };
export type GenerationAnswer = { "number": number; "run": string; "fingerprint": string; "blobs": number; "bytes": number; "sealed_at": string | null; "code": string; "why": string; };
export type Git = { "commit": string; "dirty": boolean; "branch": string; "repository": string; };
export type GrantAnswer = { "id": string; "purpose": string; "made_at": string; "by": string; "by_id": string; "budget": number; "until": string; "may": (May)[]; "routes": (string)[]; "trainers": (string)[]; "clusters": (string)[]; "models": (string)[]; "shares": (string)[]; "runs": number; "at_once": number; "then": Then; "spent": number; "reserved": number; "left": number; "runs_used": number; "runs_now": number; "over": string; "revoked_at": string | null; "drops": string; "in_progress": (InProgress)[]; "history": (DeedAnswer)[]; };
export type Health = { "status": string; "checks": Record<string, Check>; };
export type Holder = { "kind": string; "name": string; "bytes": number; "files": number; };
export type InProgress = { "run": string; "most": number; "spent": number; "ended": boolean; };
export type Key = { "pem": string; "sha256": string; "keys": (SigningKeyAnswer)[]; };
export type LeaseAnswer = { "cluster": string; "nodes": number; "owner": string; "why": string; "made_at": string; "until": string; "released_at": string | null; "released_by": string; "run": string; "project": string; "owner_id": string; "released_by_id": string; "lease": string; "active": boolean; };
export type Link = { "link": string; "state": string; "says": string; };
export type ListedDrop = { "state": DropState; "opened_at": string; "generation": number; "run": string; "blobs": number; "bytes": number; "sealed_at": string | null; "why": string; "owner": string; "files": number | null; "drop": string; "fingerprint": string; "code": string; "removed_at": string | null; "event_form": string; };
export type ListedRun = { "created_at": string; "drop": string; "experiment": string; "cluster": string; "nodes": number; "parameters": Record<string, any>; "state": RunState; "archived_at": string | null; "owner": string; "tags": Record<string, string>; "run": string; "best": Best | null; "duration_seconds": number | null; "route": string; "fingerprint": string; "retry_of": string; "continues": string; "from_run": string; "resubmissions": number; "generation": number; "keep_warm_seconds": number; "timeout_seconds": number; "kind": string; "history": (MomentAnswer)[]; "attempts": number; "reason": string; "failure": string; "trained_on": string; "data_note": string; "job": string; "code": string; "environment": string; "job_number": number; "resubmit": boolean; "project": string; "price": number; "price_from": string; "estimated_cost": number | null; "greatest_cost": number | null; "cost_allowed": number | null; "cost": CostAnswer | null; "output": string; "archive_error": string; "gave_up_at": string | null; "saved_step": number | null; "goals": Record<string, string>; "hardware": string; "owner_id": string; "notes": (NoteAnswer)[]; "audit": (AuditedAnswer)[]; "cancel_asked_at": string | null; "cancel_why": string; "cancel_code": CancelCode; "canceled_by": string; "canceled_by_id": string; "removed_at": string | null; "removed_by": string; "removed_by_id": string; "cleared": (string)[]; "warning": string; "warned_because": string; "waiting": WaitingAnswer | null; "metrics": Metrics; "cause": string; "git": Git | null; "labeled": Record<string, string>; "listed": Record<string, string>; "steps": (StepAnswer)[]; "elastic": ElasticAnswer | null; "date": DateAnswer | null; "sweep": SweepSummaryAnswer | null; "trial": TrialOfAnswer | null; "usage": UsageSummaryAnswer | null; "diagnosis": Diagnosis | null; "health": RunHealthAnswer | null; "data_check": DataCheckAnswer | null; };
export type Live = { "run": RunAnswer; "metrics": NewPoints; "log": NewLog | null; };
export type LossAnswer = { "job": string; "at": string; "why": string; };
export type May = "cancel" | "lease" | "promote" | "read" | "run-code" | "submit" | "upload";
export type Me = { "auth": string; "name": string; "id": string; "may_change": boolean; };
export type MemberAnswer = { "member": number; "job": string; "attempt": number; "state": RunState; "at": string; "why": string; "seconds": number; "cost": number | null; };
export type Metrics = { "last": Record<string, number>; "best": Record<string, number>; "best_steps": Record<string, number>; "of_model": Record<string, number>; "by_trainer": (string)[]; };
export type ModelAnswer = { "model": string; "latest": number; "chosen_by": string; "aliases": (AliasAnswer)[]; };
export type ModelPage = { "model": string; "latest": number; "chosen_by": string; "aliases": (AliasAnswer)[]; "versions": (VersionAnswer)[]; "history": (ChangeAnswer)[]; };
export type MomentAnswer = { "state": RunState; "at": string; "why": string; "failure": string; };
export type MovedToday = { "model": string; "alias": string; "version": number; "at": string; "by": string; "why": string; };
export type NeedsYou = { "kind": string; "name": string; "why": string; "at": string | null; "at_most": number | null; "spent": number; "reserved": number; "month": number; "messages": number; "lease": string; "nodes": number; "until": string | null; };
export type NewLog = { "text": string; "offset": number; "next_offset": number; "size": number; "complete": boolean; "ranks": (number)[]; };
export type NewPoints = { "series": Record<string, ((number | null)[])[]>; "next": string; };
export type NodeChoice = "both" | "dedicated" | "low_priority" | "none" | "one_dedicated";
export type NodeSample = { "at": string; "running": number; "idle": number; "preparing": number; "leaving": number; "unusable": number; "known": boolean; };
export type NodeUsageAnswer = { "run": string; "sentence": string; "summary": UsageSummary | null; "waited_for_data": number | null; "time_went": TimeWent; "advice": string | null; "samples": (Record<string, any>)[]; };
export type NodesReport = { "since": string; "until": string; "clusters": (ClusterNodes)[]; };
export type NoteAnswer = { "text": string; "by": string; "by_id": string; "at": string; };
export type NoticeKind = "budget" | "canceled" | "completed" | "evicted" | "failed" | "idle" | "late" | "model" | "poison" | "schedule" | "sick" | "test";
export type Outcome = "failed" | "skipped" | "started";
export type OutputAnswer = { "name": string; "state": string; "path": string; "why": string; "folder": string; "files": number; "asset": string; };
export type Overlap = "allow" | "replace" | "skip";
export type Pictures = { "of": string; "pictures": Record<string, string>; };
export type PlannedRemoval = { "what": RemovalKind; "name": string; "at": string; "why": string; };
export type Queue = { "messages": number; "poison": number; };
export type QuotedLine = { "number": number; "text": string; "rank": number | null; };
export type RemovalAnswer = { "what": RemovalKind; "name": string; "asked_at": string; "by": string; "why": string; "files": number; "bytes": number; "done_at": string | null; "by_id": string; };
export type RemovalKind = "checkpoints" | "copies" | "drop" | "run";
export type Rival = { "name": string; "value": number; "better": boolean | null; };
export type RouteAnswer = { "route": string; "trains": boolean; "trainer": string; "description": string; "elastic": boolean; "cluster": string; "clusters": (string)[]; "nodes": number; "min_nodes": number; "max_nodes": number; "timeout_seconds": number; "vm_size": string; "processes": number; "experiment": string; "job_files": boolean; "parameters": Record<string, any>; };
export type Rows = { "rows": (RunRow)[]; "gone": (string)[]; "changes": string | null; "complete": boolean; "continue": string | null; };
export type RunAnswer = { "created_at": string; "drop": string; "route": string; "fingerprint": string; "experiment": string; "cluster": string; "nodes": number; "retry_of": string; "continues": string; "from_run": string; "resubmissions": number; "generation": number; "parameters": Record<string, any>; "keep_warm_seconds": number; "timeout_seconds": number; "kind": string; "state": RunState; "history": (MomentAnswer)[]; "attempts": number; "reason": string; "failure": string; "trained_on": string; "data_note": string; "job": string; "code": string; "environment": string; "job_number": number; "resubmit": boolean; "project": string; "price": number; "price_from": string; "estimated_cost": number | null; "greatest_cost": number | null; "cost_allowed": number | null; "cost": CostAnswer | null; "output": string; "archived_at": string | null; "archive_error": string; "gave_up_at": string | null; "saved_step": number | null; "goals": Record<string, string>; "hardware": string; "owner": string; "owner_id": string; "tags": Record<string, string>; "notes": (NoteAnswer)[]; "audit": (AuditedAnswer)[]; "cancel_asked_at": string | null; "cancel_why": string; "cancel_code": CancelCode; "canceled_by": string; "canceled_by_id": string; "removed_at": string | null; "removed_by": string; "removed_by_id": string; "cleared": (string)[]; "warning": string; "warned_because": string; "run": string; "waiting": WaitingAnswer | null; "metrics": Metrics; "best": Best | null; "duration_seconds": number | null; "cause": string; "git": Git | null; "labeled": Record<string, string>; "listed": Record<string, string>; "steps": (StepAnswer)[]; "elastic": ElasticAnswer | null; "date": DateAnswer | null; "sweep": SweepSummaryAnswer | null; "trial": TrialOfAnswer | null; "usage": UsageSummaryAnswer | null; "diagnosis": Diagnosis | null; "health": RunHealthAnswer | null; "data_check": DataCheckAnswer | null; };
export type RunHealthAnswer = { "ailments": (Ailment)[]; "checked_at": string | null; };
export type RunPageAnswer = { "runs": (ListedRun)[]; "continue": string | null; "looked_at": number; "hint": string; };
export type RunRow = { "run": string; "state": RunState; "drop": string; "owner": string; "experiment": string; "nodes": number; "created_at": string; "started_at": string | null; "ended_at": string | null; "tags": Record<string, string>; "parameters": Record<string, any>; "headline": string | null; "best": Record<string, number>; "best_step": number | null; "of_model": Record<string, number>; "cost": number | null; "why": string; "sweep": string; "trials": number | null; "done_share": number | null; "listed": Record<string, string>; "used": number | null; };
export type RunState = "broken" | "canceled" | "completed" | "failed" | "queued" | "received" | "running" | "submitted";
export type RunningToday = { "run": string; "started_at": string | null; "cost": number | null; "at_most": number | null; "done_share": number | null; "epochs": number | null; "done_by": string | null; "late": boolean; "headline": string | null; };
export type ScheduleAnswer = { "id": string; "request": Record<string, any>; "created_at": string; "cron": string; "timezone": string; "route": string; "new_files": number; "catch_up": CatchUp; "overlap": Overlap; "paused": boolean; "owner": string; "next_at": string | null; "last_run": string; "owner_id": string; "paused_at": string | null; "paused_by": string; "paused_by_id": string; "arrived": number; "drops_until": string | null; };
export type Series = { "series": Record<string, ((number | null)[])[]>; };
export type SettingAnswer = { "name": string; "about": string; "value": string; "is_set": boolean; "secret": boolean; };
export type SigningKeyAnswer = { "sha256": string; "pem": string; "since": string; "until": string | null; "withdrawn_at": string | null; "by": string; "by_id": string; "why": string; };
export type SizeAnswer = { "at": string; "nodes": number; };
export type SpentToday = { "today": number; "yesterday": number; };
export type StartsNext = { "schedule": string; "what": string; "at": string; };
export type Status = { "checks": Record<string, string>; "queues": Record<string, Queue>; "poison": Record<string, (string)[]>; "drops": (DropAnswer)[]; "runs": (RunAnswer)[]; "clusters": (ClusterAnswer)[]; };
export type StepAnswer = { "step": string; "state": StepState; "needs": (string)[]; "job": string; "began": string | null; "ended": string | null; "why": string; };
export type StepState = "canceled" | "completed" | "failed" | "queued" | "running" | "skipped" | "waiting";
export type SubscriptionAnswer = { "id": string; "on": (NoticeKind)[]; "channel": Channel; "created_at": string; "owner": string; "route": string; "experiment": string; "owner_id": string; "to": string; };
export type SweepSummaryAnswer = { "trials": number; "trials_ended": number; "best_trial": string; "best_value": number | null; "trials_dollars": number; "sweep_closing": string; "early_values": string; "most_trials": number | null; };
export type Then = "cancel" | "finish";
export type TimeWent = { "data": number | null; "saving": number | null; "others": number | null; "computing": number | null; };
export type Today = { "needs": (NeedsYou)[]; "running": (RunningToday)[]; "waiting": (WaitingRun)[]; "completed": (CompletedToday)[]; "promotions": (MovedToday)[]; "spent": SpentToday | null; "next": (StartsNext)[]; "unknown": Record<string, string>; "empty": boolean; };
export type Trainer = { "trainer": string; "description": string; "elastic": boolean; "routes": (string)[]; "parameters": Record<string, any>; };
export type TrialAnswer = { "number": number; "run": string; "state": RunState; "parameters": Record<string, any>; "told": number | null; "of_model": number | null; "dollars": number; };
export type TrialOfAnswer = { "sweep": string; };
export type Trials = { "metric": string; "maximize": boolean; "trials": (TrialAnswer)[]; "importance": Record<string, number>; };
export type UsageAnswer = { "kinds": Record<string, number>; "holders": (Holder)[]; "complete": boolean; };
export type UsageSummary = { "nodes": number; "cpu": number | null; "cores": number | null; "cores_in_all": number | null; "memory": number | null; "memory_in_all": number | null; "gpus": number; "gpu": number | null; "gpu_memory": number | null; "gpu_memory_in_all": number | null; "gpu_energy": number | null; "until": string | null; };
export type UsageSummaryAnswer = { "nodes": number; "cpu": number | null; "cores": number | null; "cores_in_all": number | null; "memory": number | null; "memory_in_all": number | null; "gpus": number; "gpu": number | null; "gpu_memory": number | null; "gpu_memory_in_all": number | null; "gpu_energy": number | null; "until": string | null; };
export type VersionAnswer = { "model": string; "number": number; "run": string; "digest": string; "signer": string; "by": string; "by_id": string; "why": string; "bytes": number; "metrics": Record<string, number>; "said_by_trainer": (string)[]; "drop": string; "generation": number; "from_run": string; "reads": (string)[]; "asset": string; "aliases": (string)[]; "promoted_at": string; "judged_by": (string)[]; };
export type WaitingAnswer = { "code": string; "why": string; "since": string | null; "family": string; "used": number | null; "limit": number | null; "words": string; "expected_at": string | null; "after": (string)[]; };
export type WaitingRun = { "run": string; "since": string; "why": string; "expected_at": string | null; "after": (string)[]; };

export type AnswerOf<P> =
  P extends readonly ["clusters"] ? (ClusterAnswer)[] :
  P extends readonly ["compare"] ? Compared :
  P extends readonly ["costs"] ? CostReport :
  P extends readonly ["curves"] ? Curves :
  P extends readonly ["data", "card"] ? CardAnswer :
  P extends readonly ["data", "card", "diff"] ? CardChanges :
  P extends readonly ["data", "diff"] ? Diff :
  P extends readonly ["data", "files"] ? FilesAnswer :
  P extends readonly ["data", "pictures"] ? Pictures :
  P extends readonly ["drops"] ? (ListedDrop)[] :
  P extends readonly ["find"] ? FoundName :
  P extends readonly ["grant"] ? GrantAnswer :
  P extends readonly ["grants"] ? (GrantAnswer)[] :
  P extends readonly ["health"] ? Health :
  P extends readonly ["leases"] ? (LeaseAnswer)[] :
  P extends readonly ["me"] ? Me :
  P extends readonly ["model-key"] ? Key :
  P extends readonly ["models"] ? (ModelAnswer)[] :
  P extends readonly ["nodes"] ? NodesReport :
  P extends readonly ["notices"] ? (SubscriptionAnswer)[] :
  P extends readonly ["openapi.json"] ? Record<string, any> :
  P extends readonly ["removals"] ? (RemovalAnswer)[] :
  P extends readonly ["retention"] ? (PlannedRemoval)[] :
  P extends readonly ["routes"] ? (RouteAnswer)[] :
  P extends readonly ["rows"] ? Rows :
  P extends readonly ["runs"] ? RunPageAnswer :
  P extends readonly ["schedules"] ? (ScheduleAnswer)[] :
  P extends readonly ["settings"] ? (SettingAnswer)[] :
  P extends readonly ["status"] ? Status :
  P extends readonly ["today"] ? Today :
  P extends readonly ["trainers"] ? (Trainer)[] :
  P extends readonly ["usage"] ? UsageAnswer :
  P extends readonly ["grants", string | number] ? GrantAnswer :
  P extends readonly ["models", string | number] ? ModelPage :
  P extends readonly ["notices", string | number, "deliveries"] ? (DeliveryAnswer)[] :
  P extends readonly ["runs", string | number] ? RunAnswer :
  P extends readonly ["runs", string | number, "artifacts"] ? Artifacts :
  P extends readonly ["runs", string | number, "live"] ? Live :
  P extends readonly ["runs", string | number, "metrics"] ? Series :
  P extends readonly ["runs", string | number, "trials"] ? Trials :
  P extends readonly ["runs", string | number, "usage"] ? NodeUsageAnswer :
  P extends readonly ["schedules", string | number, "firings"] ? (FiringAnswer)[] :
  P extends readonly ["drops", string | number, string | number] ? DropAnswer :
  P extends readonly ["drops", string | number, string | number, "generations"] ? (GenerationAnswer)[] :
  P extends readonly ["models", string | number, "versions", string | number] ? VersionAnswer :
  P extends readonly ["models", string | number, "versions", string | number, "attestations"] ? (AttestationAnswer)[] :
  P extends readonly ["models", string | number, "versions", string | number, "why"] ? Chain :
  P extends readonly ["runs", string | number, "artifacts", string | number] ? FileAddress :
  P extends readonly ["models", string | number, "versions", string | number, "files", string | number] ? FileAddress :
  P extends readonly ["models", string | number, "versions", string | number, "reproductions", string | number] ? ComparisonAnswer :
  any;
