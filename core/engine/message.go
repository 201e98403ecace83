package engine

import "firesteel/models/chat"

// Message is one turn of a conversation, as requests carry it.
type Message = chat.Message
