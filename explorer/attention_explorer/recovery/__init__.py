"""What outlives a program that was ended: autosaves, logs, reports of crashes, folders of trainings."""
