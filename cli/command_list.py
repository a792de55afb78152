"""Each command with its module and the first sentence of its help; and each group's sentence.

Made by .ci/generate.py from the commands; do not edit. They are known before anything is installed or imported.
"""

COMMANDS = {
    "submit": ("runs", "Submit a training: a trainer, an Azure ML job file, or a folder of your own code."),
    "runs": ("runs", "List runs, newest first, with the best metric of each and the parameters that differ."),
    "compare": ("runs", "Show the differences between runs, and with --plot or --name their curves."),
    "show": ("runs", "Show a run's history, or why a drop did not start."),
    "cancel": ("runs", "Cancel a run."),
    "retry": ("runs", "Start a run that has ended again from the beginning, as a new run."),
    "continue": ("runs", "Continue a run that has ended from its newest checkpoint, as a new run."),
    "drop": ("drop", "Upload a folder as a drop, which starts a run."),
    "logs": ("logs", "Print the log of a run, and follow it."),
    "metrics": (
        "logs",
        "Plot the curves of a run in the terminal, or into a PNG. With --nodes, plot how its nodes were used.",
    ),
    "fetch": ("fetch", "Download a run's models, logs and metrics, or a model's version with its proof."),
    "predict": (
        "predict",
        "Show what the model of a run predicts for files or a folder: images, or texts with [MASK] for bert.",
    ),
    "promote": ("models", "Make the model of a run the next version of a model, or move an alias to a version."),
    "models": ("models", "List the models with their aliases, or the versions, metrics and history of one model."),
    "verify": (
        "models",
        "Check a folder against the signature of a version: no file changed, added or missing, the right signer.",
    ),
    "attest": (
        "models",
        "Add evidence to a version after it was signed, such as an approval or a test report, or list what there is.",
    ),
    "why": (
        "models",
        "Show the origin of a version, link by link, from its name to its data. Each link is checked now.",
    ),
    "reproduce": ("models", "Train a version again from its recorded parts, and compare the digests of the weights."),
    "keys": (
        "signing_keys",
        "List the keys that sign models of this deployment, and whether this computer trusts them.",
    ),
    "note": ("notes_and_tags", "Write a note on a run; `show` prints the notes with their authors and times."),
    "tag": ("notes_and_tags", "Set or remove tags of a run; `runs --where` finds runs by tags."),
    "import": ("batchai", "Run a Batch AI job, or show the Azure ML equivalent of a Batch AI document."),
    "run": (
        "batchai",
        "Run the project in a folder: submit, show the log, fetch models and logs, scale the cluster to zero.",
    ),
    "status": ("clusters", "Show queues, poison messages, drops, runs and clusters."),
    "clusters": ("clusters", "List the clusters and why each is up, or apply a file that declares them."),
    "pause": ("clusters", "Scale a cluster to zero nodes now."),
    "lease": ("clusters", "Keep nodes of a cluster warm for some time."),
    "leases": ("clusters", "List the leases that hold nodes now."),
    "extend": ("clusters", "Extend a lease to this time from now."),
    "release": ("clusters", "End a lease now; its nodes are released unless something else needs them."),
    "cost": ("cost", "Show what the nodes cost, and what is left of the budgets."),
    "evict": ("evict", "Evict a node from a running run, as a preemption does."),
    "rm": ("storage", "Delete a drop, or the archive, checkpoints, logs and files of a run."),
    "du": (
        "storage",
        "Show what uses storage: drops, archives, checkpoints, and outputs that jobs left in their own folders.",
    ),
    "mcp": ("agents", "Offer the tools for agents on standard input and output."),
    "report": (
        "agents",
        "Print a run as a comment in Markdown: its metrics beside the champion's, cost, diagnosis, and a picture.",
    ),
    "login": ("setup", "Store a deployment and its key, and use it from now on."),
    "logout": ("setup", "Forget a deployment and its key."),
    "doctor": ("setup", "Check this set-up, and say how to fix what is wrong."),
    "completion": ("setup", "Print the script with which bash, zsh or fish completes commands, options and names."),
    "open": ("setup", "Open the page in the browser: a run, or all of them."),
}

GROUPS = {
    "data": "See the versions of a drop's data.",
    "schedule": "Start runs at set times, or when new files arrive.",
    "notify": "Send notices of events to a webhook, Slack, Teams or mail.",
    "grant": "Let another program submit runs within a budget, a scope and a time limit.",
    "admin": "Administer a deployment. Needs rights on its Azure resources.",
}
