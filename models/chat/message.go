// Package chat turns a conversation into the text a model was trained to continue, with the
// model's own template.
package chat

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"` // "system", "user" or "assistant"
	Content string `json:"content"`
}
