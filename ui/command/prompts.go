package command

import (
	"firesteel/core/job"
	"firesteel/core/library"
	"firesteel/core/prompts"
)

const (
	chatsHelp = "use your own chats as prompts: those that the window keeps once its settings say so"
	errBoth   = usageError("--prompts and --chats exclude each other.")
)

// ownChats are the prompts of the chats that are kept, for the target in folder dir.
func ownChats(dir string) ([]prompts.Prompt, error) {
	place, err := job.Notes()
	if err != nil {
		return nil, err
	}
	identity, err := library.Identity(dir)
	if err != nil {
		return nil, err
	}
	return prompts.ChatsIn(place).Load(identity)
}
