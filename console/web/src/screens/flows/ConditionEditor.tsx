import { Button, Group, Modal, Text } from '@mantine/core'
import { useMemo, useState } from 'react'
import { count } from '@/shared/format'
import { parseJson, writeJson, type Json } from '@/shared/json'
import { check } from '../segments/check'
import { BuilderContext } from '../segments/context'
import { asGroup, fromJson, toJson } from '../segments/definition'
import { newDefinition } from '../segments/model'
import { GroupView } from '../segments/NodeView'
import { countsOf, usePreview } from '../segments/usePreview'
import { useUndo } from '../segments/useUndo'

/** The condition of a step as sentences, with the number of people for whom it holds now. */
export function ConditionEditor({ value, onSave, onClose }: { value: Json | undefined; onSave: (definition: Json) => void; onClose: () => void }) {
  const { value: root, edit } = useUndo(() => (value ? asGroup(fromJson(value)) : newDefinition()))
  const [dragging, setDragging] = useState<string | null>(null)
  const problems = useMemo(() => check(root), [root])
  const text = useMemo(() => writeJson(toJson(root)), [root])
  const preview = usePreview(root, problems.size === 0 ? text : null, '')
  const counts = useMemo(() => countsOf(root, text, preview.data), [root, text, preview.data])
  return (
    <Modal opened onClose={onClose} title="Who takes the yes branch?" size="xl">
      <BuilderContext.Provider value={{ root, edit, problems, said: new Map(), counts, stale: preview.data?.text !== text, segmentId: '', dragging, setDragging, focus: () => {} }}>
        <GroupView group={root} path="" />
      </BuilderContext.Provider>
      <Group justify="space-between" mt="md">
        <Text size="sm" c="dimmed">
          {preview.data ? `It is true now for ${count(preview.data.answer.count)} of ${count(preview.data.answer.profiles)} people.` : ''}
        </Text>
        <Group gap="xs">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button disabled={problems.size > 0} onClick={() => onSave(parseJson(text))}>
            Use it
          </Button>
        </Group>
      </Group>
    </Modal>
  )
}
