use serde_json::json;

use crate::workbench::Workbench;

#[tokio::test]
async fn the_list_comes_back_as_check_boxes() {
    let bench = Workbench::new();
    let items = json!({"items": [
        {"text": "Look", "status": "done"},
        {"text": "Think", "status": "doing"},
        {"text": "Write\nit", "status": "pending"},
    ]});
    assert_eq!(
        bench.done("todo", items).await,
        "- [x] Look\n- [ ] **Think** (doing)\n- [ ] Write it"
    );
    assert_eq!(
        bench.done("todo", json!({"items": []})).await,
        "The list is empty."
    );
}
