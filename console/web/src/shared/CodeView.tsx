import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { html } from '@codemirror/lang-html'
import { json } from '@codemirror/lang-json'
import { bracketMatching, foldGutter, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language'
import { lintGutter, setDiagnostics } from '@codemirror/lint'
import { Compartment, EditorState } from '@codemirror/state'
import { EditorView, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'

export interface CodeProps {
  value: string
  language: 'json' | 'html'
  /** Name for screen readers. */
  label: string
  onChange?: (value: string) => void
  readOnly?: boolean
  /** Where the text is wrong, counted in characters from 0. */
  problem?: { at: number; message: string } | null
  minHeight?: number
  maxHeight?: number
}

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--code-name)' },
  { tag: [tags.string, tags.attributeValue], color: 'var(--code-text)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--code-number)' },
  { tag: [tags.tagName, tags.attributeName], color: 'var(--code-name)' },
  { tag: tags.comment, color: 'var(--mantine-color-dimmed)' },
])

export default function CodeView({ value, language, label, onChange, readOnly = false, problem, minHeight = 200, maxHeight = 560 }: CodeProps) {
  const parent = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(null)
  const change = useRef(onChange)
  change.current = onChange
  const first = useRef(value)
  useEffect(() => {
    const editable = new Compartment()
    const editor = new EditorView({
      parent: parent.current!,
      state: EditorState.create({
        doc: first.current,
        extensions: [
          lineNumbers(), foldGutter(), history(), indentOnInput(), bracketMatching(), lintGutter(), language === 'json' ? json() : html({ autoCloseTags: false }),
          syntaxHighlighting(colours), keymap.of([...defaultKeymap, ...historyKeymap]), EditorView.lineWrapping,
          editable.of([EditorState.readOnly.of(readOnly), EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' })]),
          EditorView.updateListener.of((u) => u.docChanged && change.current?.(u.state.doc.toString())),
          EditorView.theme({
            '&': { fontSize: '12.5px', border: '1px solid var(--mantine-color-default-border)', borderRadius: 'var(--mantine-radius-sm)', backgroundColor: 'var(--mantine-color-body)' },
            '.cm-scroller': { minHeight: `${minHeight}px`, maxHeight: `${maxHeight}px`, fontFamily: 'var(--mantine-font-family-monospace)' },
            '.cm-gutters': { backgroundColor: 'transparent', color: 'var(--mantine-color-dimmed)', border: 'none' },
            '.cm-content': { caretColor: 'var(--mantine-color-text)' },
            '.cm-content:focus-visible': { outline: 'none' },
            '&.cm-focused': { outline: '2px solid var(--mantine-primary-color-filled)', outlineOffset: '-1px' },
            '.cm-tooltip': { backgroundColor: 'var(--mantine-color-body)', color: 'var(--mantine-color-text)', border: '1px solid var(--mantine-color-default-border)' },
          }),
        ],
      }),
    })
    view.current = editor
    return () => editor.destroy()
  }, [language, label, readOnly, minHeight, maxHeight])
  useEffect(() => {
    const editor = view.current
    if (editor && editor.state.doc.toString() !== value) editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } })
  }, [value])
  useEffect(() => {
    const editor = view.current
    if (!editor) return
    const at = Math.min(problem?.at ?? 0, editor.state.doc.length)
    editor.dispatch(setDiagnostics(editor.state, problem ? [{ from: at, to: Math.min(at + 1, editor.state.doc.length), severity: 'error', message: problem.message }] : []))
  }, [problem])
  return <div ref={parent} />
}
