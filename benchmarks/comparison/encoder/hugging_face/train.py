import numpy as np
from datasets import load_dataset
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

data = load_dataset("csv", data_files="train.csv", split="train").class_encode_column("label")
names = data.features["label"].names
tokenizer = AutoTokenizer.from_pretrained("encoder")
data = data.map(lambda rows: tokenizer(rows["text"], truncation=True), batched=True)
data = data.train_test_split(test_size=0.1, seed=0)
model = AutoModelForSequenceClassification.from_pretrained(
    "encoder",
    num_labels=len(names),
    id2label=dict(enumerate(names)),
    label2id={name: number for number, name in enumerate(names)},
)


def accuracy(answers):
    return {"accuracy": np.mean(answers.predictions.argmax(-1) == answers.label_ids)}


trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir="checkpoints",
        learning_rate=2e-5,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=16,
        num_train_epochs=2,
        weight_decay=0.01,
        eval_strategy="epoch",
        save_strategy="epoch",
        load_best_model_at_end=True,
    ),
    train_dataset=data["train"],
    eval_dataset=data["test"],
    processing_class=tokenizer,
    data_collator=DataCollatorWithPadding(tokenizer),
    compute_metrics=accuracy,
)
trainer.train()
trainer.save_model("model")
